"""Maximum-entropy classification over many classes."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # before scipy is loaded
