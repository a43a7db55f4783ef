"""Training: the epoch loop, progress, signals, checkpoints of any training."""
