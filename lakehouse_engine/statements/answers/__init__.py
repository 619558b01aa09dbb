"""Statements that change nothing: what the warehouse and its tables say about themselves."""
