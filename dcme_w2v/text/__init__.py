"""Convert text to token IDs: reading, tokenizing, counting, vocabularies, phrases."""
