"""Document vectors (SCDV) and topics, from soft clusters of word vectors."""
