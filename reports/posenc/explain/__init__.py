"""posenc explain: pages of encodings, model files in words, and C code of a model."""
