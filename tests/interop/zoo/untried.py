"""What nobody has taken through the whole visit yet, by the Hudi that makes the table."""

UNTRIED: dict[str, frozenset[str]] = {"0.15.0": frozenset(), "1.2.0": frozenset()}
"""Visited with LAKEHOUSE_ZOO=untried or by name; other runs and the documentation leave them out."""
