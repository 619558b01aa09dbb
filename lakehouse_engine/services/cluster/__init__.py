"""Clustering: rewrites the rows of many files together, sorted and in files of a good size, and replaces those files.

A clustering is scheduled (a plan on the timeline), then run, by the same process or another one, while writers go on. A write to file
groups of a plan takes them out of it (`commit.concurrency.clusterings`); the others are clustered. The commit replaces old groups by new
ones.
"""

from lakehouse_engine.services.cluster.operation import run, schedule, schedule_and_run
from lakehouse_engine.services.cluster.triggers import is_due

__all__ = ["is_due", "run", "schedule", "schedule_and_run"]
