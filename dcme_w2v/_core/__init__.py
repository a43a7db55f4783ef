"""Thin Cython bindings: they take structs, return arrays, and release the GIL in between."""
