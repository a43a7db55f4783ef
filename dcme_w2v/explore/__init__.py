"""A page of HTML to explore vectors: questions, neighbors and a map, without a network."""
