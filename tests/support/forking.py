"""Processes forked off one that has imported everything: they are at work after some milliseconds."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

_PRELOADED = ["tests.crash.writer", "tests.histories.writer", "tests.histories.reader", "tests.histories.workloads"]


def forkserver() -> ForkServerContext:
    """One server serves all tests of a session, and imports what the first of them asks for: so that is all."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context
