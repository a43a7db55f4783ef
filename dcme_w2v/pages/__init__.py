"""The HTML page that `explore` writes to show vectors in a browser."""
