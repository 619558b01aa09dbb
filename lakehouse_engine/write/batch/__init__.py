"""The rows of a write: keyed, staged, and reduced to those that count."""
