"""The HTML page that the command `explore` writes for viewing vectors in a browser."""
