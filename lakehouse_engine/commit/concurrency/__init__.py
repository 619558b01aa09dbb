"""Other processes at work on a table, and pending plans."""
