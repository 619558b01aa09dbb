"""Parsers of the engine's statements, by subject."""
