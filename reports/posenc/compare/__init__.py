"""posenc compare: whether a change made a kernel slower or faster, or its results others."""
