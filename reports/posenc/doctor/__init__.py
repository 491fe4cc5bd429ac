"""posenc doctor: conditions on a machine that disturb timings."""
