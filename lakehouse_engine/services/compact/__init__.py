"""Compaction of merge-on-read tables: fold the logs of slices into new base files, or many log blocks into one.

A compaction is scheduled (as a plan on the timeline), then run, by the same process or another one. Writers continue meanwhile: once it is
planned, they log to the slice that it will make. `run` takes the table lock only to begin and to complete, so it may run in a thread of a
session or in a process of its own.
"""

from lakehouse_engine.services.compact.operation import run, schedule, schedule_and_run
from lakehouse_engine.services.compact.triggers import is_due

__all__ = ["is_due", "run", "schedule", "schedule_and_run"]
