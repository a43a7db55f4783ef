"""Read and write corpora, documents, tables, sparse rows, word vectors and models."""
