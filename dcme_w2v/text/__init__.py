"""Convert text to token IDs: read, tokenize and count it, select words, and join phrases."""
