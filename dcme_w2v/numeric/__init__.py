"""Numeric helpers: arrays, threads, L-BFGS, k-means, scikit-learn conventions."""
