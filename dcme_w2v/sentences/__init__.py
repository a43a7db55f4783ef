"""Compute sentence vectors from word vectors, and save them in folders for other programs."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # raise an error if importing scipy would hang
