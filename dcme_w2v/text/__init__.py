"""Convert text to token IDs: read, tokenize and count text, select words, and join phrases."""
