"""The command line: one file a command; parse, one call of the Python API, print."""
