"""Compute sentence vectors from word vectors, and write folders for other programs."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # this call raises an error if loading scipy would hang
