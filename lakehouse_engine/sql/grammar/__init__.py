"""Spark SQL text as tokens, and the parsers of statements that the engine runs itself."""
