"""Pictures: learning curves, words and documents in a plane."""
