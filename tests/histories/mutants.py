"""Engines with one guarantee taken away, in the processes of the writers: the checkers must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakehouse_engine.commit import expected
from lakehouse_engine.commit.rollback import recover
from lakehouse_engine.timeline.locks.kernel import KernelLock


def _nothing(*arguments: Any, **named: Any) -> None:
    """In the place of what is left out."""


def _replace(owner: Any, name: str, by: Any) -> None:
    assert hasattr(owner, name), f"{owner} has no {name} any more: the mutant must be made anew"
    setattr(owner, name, by)


def _yes(*arguments: Any, **named: Any) -> bool:
    """In the place of a check that passes."""
    return True


def _whole() -> None:
    """Nothing is taken away."""


def _what_was_read_is_not_looked_at() -> None:
    _replace(expected.Expectation, "check", _nothing)
    _replace(expected, "check_expected", _nothing)


def _no_lock() -> None:
    _replace(KernelLock, "acquire", _nothing)
    _replace(KernelLock, "release", _nothing)
    _replace(KernelLock, "confirm", _yes)


def _no_lock_and_nobody_is_alive() -> None:
    """Whoever comes takes back what others are writing."""
    _no_lock()
    _replace(recover, "find_heartbeat", _nothing)


MUTANTS: dict[str, Callable[[], None]] = {
    "": _whole,
    "expected": _what_was_read_is_not_looked_at,
    "lock": _no_lock,
    "heartbeat": _no_lock_and_nobody_is_alive,
}
