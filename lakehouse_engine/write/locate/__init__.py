"""Finds where keys of a batch are stored, and what happens to the stored rows."""
