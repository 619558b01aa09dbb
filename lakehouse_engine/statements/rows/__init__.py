"""Statements that change rows: Spark computes them, and each is one commit."""
