"""posenc compare: compares the speed and the results of two builds."""
