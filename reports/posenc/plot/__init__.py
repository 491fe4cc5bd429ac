"""Pictures of encodings, of errors and of speeds: posenc plot."""
