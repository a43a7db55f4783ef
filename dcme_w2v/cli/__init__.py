"""The command line, whose modules parse arguments, call the Python API and print results."""
