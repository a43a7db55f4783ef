"""The command line: each command's file parses arguments, calls the Python API and prints."""
