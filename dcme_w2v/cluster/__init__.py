"""Training on several machines: train each shard separately, then combine the results."""
