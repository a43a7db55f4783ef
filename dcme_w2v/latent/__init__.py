"""Discriminative latent classes: clusters of documents, and classifiers with a hidden layer."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # before scipy is loaded
