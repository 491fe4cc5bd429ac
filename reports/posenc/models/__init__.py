"""Reads model files: which positional encodings a model has, and the problems that check and time them."""
