"""Cleaning: delete the versions of files that no query within the retention reads.

The plan stands on the timeline before anything is deleted; a clean whose process died is finished by the next one.
"""

from lakehouse_engine.services.clean.service import clean, clean_is_due, finish_cleans

__all__ = ["clean", "clean_is_due", "finish_cleans"]
