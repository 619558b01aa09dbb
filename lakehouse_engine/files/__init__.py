"""What is inside a table's data files: base files and their footers, logs and their blocks, and slices of both as rows."""
