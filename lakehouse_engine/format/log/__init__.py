"""Log files: their blocks, the contents of those, and their order in a file."""
