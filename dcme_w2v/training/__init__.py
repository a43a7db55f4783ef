"""Train models of all kinds: the epoch loop, progress, signals and checkpoints."""
