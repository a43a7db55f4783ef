"""Word vectors, document vectors and many-class text classification."""

__version__ = "0.1.0"
