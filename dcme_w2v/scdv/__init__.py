"""Document vectors (SCDV): clusters of words, topics, retrieval."""
