"""A remedy for a damaged file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakehouse_engine.repair.disorder import Disorder, DisorderKind


@dataclass(frozen=True, slots=True)
class Mending:
    """`act` does what the message says; None if nothing can be done here."""

    disorder: Disorder
    act: Callable[[], None] | None = None


def mending(path: str, message: str, act: Callable[[], None] | None) -> Mending:
    """Remedy for the damaged file at `path`."""
    return Mending(Disorder(DisorderKind.DAMAGED_FILE if act is not None else DisorderKind.BEYOND_REPAIR, path, message), act)
