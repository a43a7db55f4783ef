"""Thin Cython bindings for the C core; they release the GIL while C code runs."""
