"""Repairs damaged metadata: made again, recommitted, or set aside."""
