"""Classifiers trained on few labels and much unlabeled text (fused features)."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # this call raises an error if loading scipy would hang
