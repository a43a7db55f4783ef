"""Numeric helpers for arrays, threads, L-BFGS, k-means and scikit-learn's conventions."""
