"""Text in: files, vocabularies, token ids."""
