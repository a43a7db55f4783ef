"""Read and write word vectors in all formats, and their manifests."""
