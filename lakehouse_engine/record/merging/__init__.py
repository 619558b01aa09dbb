"""Chooses among rows of one key, and combines them."""
