"""Log files: their blocks, what is in those, and their order in a file."""
