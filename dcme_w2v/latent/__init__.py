"""Discriminative latent classes: clusters of documents, and classifiers with a hidden layer."""
