"""Plot learning curves, reliability, and two-dimensional maps of words or documents."""
