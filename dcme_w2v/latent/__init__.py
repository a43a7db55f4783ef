"""Discriminative latent classes: cluster documents, or classify them with a hidden layer."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # raise an error if importing scipy would hang
