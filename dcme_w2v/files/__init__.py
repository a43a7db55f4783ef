"""Open, decompress and atomically write files; check paths, and use fallback folders."""
