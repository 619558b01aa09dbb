"""Checks before a write: constraints of contracts, and what strategies require of their batches."""
