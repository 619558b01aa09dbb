"""Builds partitions of a metadata table from the data files, and drops them."""
