"""Documents: word clusters, composite vectors, topics and retrieval."""
