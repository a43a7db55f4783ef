"""Files of word vectors: text, binary, safetensors, fastText; their manifest."""
