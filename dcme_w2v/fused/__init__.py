"""Fused features: few weights learnt from few labels and much unlabelled text; small models."""
