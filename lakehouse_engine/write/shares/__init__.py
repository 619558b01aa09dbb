"""Writes batches that are too large for one process: keys are dealt into shares by their hash, and each share is planned on its own."""
