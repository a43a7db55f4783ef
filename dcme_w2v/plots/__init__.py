"""Plots: learning curves, reliability, and words or documents in a plane."""
