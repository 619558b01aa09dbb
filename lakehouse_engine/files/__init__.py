"""Content of a table's data files: base files and their footers, logs and their blocks, and both merged into the rows of a slice."""
