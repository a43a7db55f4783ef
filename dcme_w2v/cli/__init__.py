"""The command line: each module parses arguments, calls the Python API and prints results."""
