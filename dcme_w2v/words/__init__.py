"""Words: training, vectors and their evaluation."""
