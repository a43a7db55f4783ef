"""Numeric helpers: arrays, threads, L-BFGS, k-means, conventions of scikit-learn."""
