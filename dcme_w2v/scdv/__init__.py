"""Compute document vectors (SCDV) and topics from soft clusters of word vectors."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # raise an error if importing scipy would hang
