"""Rows of base files that logs replace, as what a filter of Spark looks into."""
