"""Reading text: files, vocabularies, token ids."""
