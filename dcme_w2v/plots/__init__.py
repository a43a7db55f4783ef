"""Plots of learning curves, reliability, and words or documents in two dimensions."""
