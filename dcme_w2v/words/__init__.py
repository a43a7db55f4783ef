"""Train, access, search, convert and evaluate word vectors."""
