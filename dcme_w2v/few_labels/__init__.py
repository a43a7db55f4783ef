"""Classifiers trained on few labels and much unlabeled text (fused features)."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # raises an error if importing scipy would hang
