"""Whether what several processes were told is what one could have been told that did all of it, one thing after the other.

Each operation took effect at some moment between its call and its answer; one whose process died did so then or later, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

State = TypeVar("State")
NEVER = float("inf")


@dataclass(frozen=True)
class Op:
    """`answer` is what was told, as the model has it. Moments are of one clock, `end` is `NEVER` where nobody was told anything."""

    what: str
    given: tuple[Any, ...]
    begin: float
    end: float = NEVER
    answer: Any = None
    repeats: bool = False
    """It may take effect several times."""

    def __str__(self) -> str:
        return f"{self.what}{self.given} -> {self.answer!r} [{self.begin:g}, {self.end:g}]"


Step = Callable[[State, Op], State | None]
"""The state after an operation; None where its answer cannot be, in that state."""


def is_linear(ops: Sequence[Op], start: State, step: Step[State], end: State | None = None) -> bool:
    """Whether some order of `ops` leads from `start` to `end` (None: to anything)."""
    ordered = sorted(ops, key=lambda one: one.begin)
    told = sum(1 << number for number, one in enumerate(ordered) if one.end < NEVER)
    waiting, seen = [(0, start)], set()
    while waiting:
        done, state = waiting.pop()
        if (done, state) in seen:
            continue
        seen.add((done, state))
        if done & told == told and end in (None, state):
            return True
        found = list(_following(ordered, done, state, step))
        # What was told that it changed nothing may as well come first.
        idle = [(after, then) for after, then, one in found if then == state and one.end < NEVER and not one.repeats]
        waiting += idle[:1] or [(after, then) for after, then, _ in found]
    return False


def _following(ordered: Sequence[Op], done: int, state: State, step: Step[State]) -> Iterator[tuple[int, State, Op]]:
    left = [number for number in range(len(ordered)) if not done >> number & 1]
    first = min((ordered[number].end for number in left), default=NEVER)
    for number in left:
        one = ordered[number]
        if one.begin > first:
            break
        after = step(state, one)
        if after is not None:
            yield done | 1 << number, after, one
        if after is not None and one.repeats and after != state:
            yield done, after, one
