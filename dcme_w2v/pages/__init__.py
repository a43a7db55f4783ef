"""The HTML page of `explore`, which shows vectors in a browser."""
