"""posenc tune: the fastest backend of each kernel, dtype and memory level."""
