"""Files of records for other programs: posenc results."""
