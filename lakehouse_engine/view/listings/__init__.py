"""Listings of a table's files, and what is kept of them."""
