"""Statements that change rows: Spark computes the rows, and each statement is one commit."""
