"""Parsers of the engine's statements, by what they are about."""
