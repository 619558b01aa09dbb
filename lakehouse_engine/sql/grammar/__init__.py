"""Spark SQL text as tokens, and the statements that are the engine's to carry out."""
