"""Which names of a statement are tables, what it needs of them, and the statement with pinned views in their places."""
