"""Files that make a table and must exist."""
