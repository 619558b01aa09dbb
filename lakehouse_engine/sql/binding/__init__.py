"""Finds the tables in a statement and what it needs of them, and puts pinned views in their places."""
