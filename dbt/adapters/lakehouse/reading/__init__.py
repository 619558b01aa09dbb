"""Answers what dbt asks about relations, and builds queries."""
