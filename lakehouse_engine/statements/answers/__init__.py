"""Statements that change nothing: questions about the warehouse and its tables."""
