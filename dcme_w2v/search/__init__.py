"""Search: ranks passages by BM25 of words and character n-grams, and finds near-duplicates."""

from dcme_w2v.files.space import check_addresses

check_addresses()  # before scipy is loaded
