"""Train on several machines: each worker trains a shard, and the results are combined."""
