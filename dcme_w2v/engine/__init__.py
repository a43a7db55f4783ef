"""The run engine: epochs, progress, signals, checkpoints and held-out scores of any training."""
