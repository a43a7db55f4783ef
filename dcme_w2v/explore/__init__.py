"""A page of HTML to explore vectors: questions, neighbours and a map, without a network."""
