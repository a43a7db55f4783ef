"""Files: atomic writes, the path guard, compression, what cannot be written."""
