"""Measures what brings a table back: savepoints, restores, long timelines. Run `python -m benchmarks.recovery --help`."""
