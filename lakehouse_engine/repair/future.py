"""Instants that a writer with a wrong clock put into the future."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.commit.table_clock import future_instants
from lakehouse_engine.repair.disorder import Disorder, DisorderKind
from lakehouse_engine.view.table_state import TableState


def future(state: TableState) -> Iterator[Disorder]:
    """One finding for all of them, naming the newest."""
    ahead = future_instants(state)
    if ahead:
        message = (
            f"{len(ahead)} instants from {ahead[0].requested_time} on are ahead of the clock, and nothing can be written behind them:"
            " restore the table to before them, or let it go on from there (both with accept_future)"
        )
        yield Disorder(DisorderKind.FUTURE_INSTANT, ahead[-1].requested_time, message)
