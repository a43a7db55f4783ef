"""Classifiers from few labels and much unlabeled text (fused features)."""
