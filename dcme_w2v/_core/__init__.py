"""Thin Cython bindings of the C core, which run it without the GIL."""
