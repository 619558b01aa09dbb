"""Cleaning: deletes file versions that no query within the retention reads.

The plan is on the timeline before anything is deleted; the next clean finishes one whose process died.
"""

from lakehouse_engine.services.clean.service import clean, clean_is_due, finish_cleans

__all__ = ["clean", "clean_is_due", "finish_cleans"]
