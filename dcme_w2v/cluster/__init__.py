"""Training on several machines: shards are trained separately, then their results combined."""
