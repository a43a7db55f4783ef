"""Read and write word vectors: text, binary, safetensors, fastText, folders; manifests."""
