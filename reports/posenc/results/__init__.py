"""The outcome of records; their exports, merges and trends: posenc results."""
