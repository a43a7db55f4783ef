"""Looking at files: what a file holds, and a page of HTML to explore vectors in a browser."""
