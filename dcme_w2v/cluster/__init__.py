"""Training on several machines: shards are trained separately, and then combined."""
