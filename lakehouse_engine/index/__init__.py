"""Finds where keys are stored."""
