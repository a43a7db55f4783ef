"""Training on several machines: shards learned apart, and the rules that mix them."""
