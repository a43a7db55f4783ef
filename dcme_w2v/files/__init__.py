"""Files: opening and decompression, atomic writes, the path guard, fallbacks."""
