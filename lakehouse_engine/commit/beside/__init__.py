"""Who else is at work on a table, and what is pending for it."""
