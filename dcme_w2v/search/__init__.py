"""Search: passages ranked by BM25 of words and of characters, and near-duplicates."""
