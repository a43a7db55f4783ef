"""Train and apply maximum-entropy classifiers with many classes."""

from dcme_w2v.files.space import check_addresses

# This call raises an error if the address-space limit is so low that importing scipy would hang.
check_addresses()
