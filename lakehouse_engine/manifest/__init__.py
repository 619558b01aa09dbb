"""Which files make a table and must be there."""
