"""Thin Cython bindings: structs in, arrays out, the GIL released in between."""
