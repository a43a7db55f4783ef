"""Discriminative latent classes: cluster documents, or classify them by a hidden layer."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # this call raises an error if loading scipy would hang
