"""The command line: one file per command, which parses, calls the Python API and prints."""
