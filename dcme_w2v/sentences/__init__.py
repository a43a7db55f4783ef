"""Sentence vectors, which are pooled from word vectors, and folders for other programs."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # this call raises an error if loading scipy would hang
