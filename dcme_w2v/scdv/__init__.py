"""Document vectors (SCDV) and topics, from soft clusters of word vectors."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # this call raises an error if loading scipy would hang
