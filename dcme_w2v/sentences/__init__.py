"""Sentence vectors: pooled word vectors, and the folder that other programs load them from."""
