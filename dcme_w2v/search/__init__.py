"""Search: ranks passages by BM25 of words and character n-grams, and finds near-duplicates."""
