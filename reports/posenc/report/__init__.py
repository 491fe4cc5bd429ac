"""The report: an answer for each model, and all that it rests on."""
