"""Files: opening, decompression, atomic writes, path checks, and fallback folders."""
