"""Training of any model: the epoch loop, progress, signals, checkpoints."""
