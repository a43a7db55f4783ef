"""Train classifiers on few labels and much unlabeled text (fused features)."""

from dcme_w2v.files.space import check_addresses

# This call raises an error if the address-space limit is so low that importing scipy would hang.
check_addresses()
