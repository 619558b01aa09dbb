"""The rows that a write was given: keyed, staged, and reduced to those that count."""
