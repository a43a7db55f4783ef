"""Thin Cython bindings of the C core, which run C code without holding the GIL."""
