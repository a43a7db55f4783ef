"""Training on several machines: shards are trained separately, and their results mixed."""
