"""Document vectors (SCDV): clusters of words and topics."""
