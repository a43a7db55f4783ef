"""Classifiers from few labels and much unlabelled text (fused features)."""
