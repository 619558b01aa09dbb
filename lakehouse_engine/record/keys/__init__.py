"""Record keys and partition paths: made from rows, and parsed back."""
