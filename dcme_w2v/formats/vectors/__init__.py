"""Files of word vectors: text, binary, npy, safetensors, fastText; their manifest."""
