"""Word vectors: training, access, search for neighbors, conversion and evaluation."""
