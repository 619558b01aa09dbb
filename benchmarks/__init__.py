"""Measures the engine against other ways to do the same work on the same data. Run `python -m benchmarks --help`."""
