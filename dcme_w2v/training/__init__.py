"""Training for all models: the epoch loop, progress, signals and checkpoints."""
