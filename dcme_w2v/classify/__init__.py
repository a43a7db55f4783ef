"""Maximum-entropy classification over many classes."""
