"""Sentence vectors made by pooling word vectors, and their folders for other programs."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # before scipy is loaded
