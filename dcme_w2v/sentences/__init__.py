"""Sentence vectors made by pooling word vectors, and their folders for other programs."""
