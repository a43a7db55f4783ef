"""Formats: readers and writers of corpora, documents, sparse rows and model folders."""
