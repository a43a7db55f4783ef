"""Classifiers trained on few labels and much unlabeled text (fused features)."""
