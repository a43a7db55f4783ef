"""Checkpoints: the whole state of a run in a folder, and when it is written."""
