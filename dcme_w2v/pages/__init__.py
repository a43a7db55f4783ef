"""A page of HTML to explore vectors in a browser."""
