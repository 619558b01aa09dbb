"""Bounded caches of a process, for files that never change under their names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(slots=True)
class BoundedCache(Generic[Value]):
    """Values with a total weight of at most `limit`, measured by `weight` (None: each weighs 1); evicts the least recently used.
    Thread-safe.

    `size` is the current weight.
    """

    limit: int
    weight: Callable[[Value], int] | None = None
    size: int = 0
    _kept: OrderedDict[Hashable, tuple[Value, int]] = field(default_factory=OrderedDict)
    _guard: Lock = field(default_factory=Lock)

    def get(self, key: Hashable) -> Value | None:
        with self._guard:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value, unless it exceeds the limit alone; an existing one stays."""
        weight = 1 if self.weight is None else self.weight(value)
        with self._guard:
            if key not in self._kept and weight <= self.limit:
                self._kept[key] = value, weight
                self.size += weight
            while self.size > self.limit:
                self.size -= self._kept.popitem(last=False)[1][1]

    def replace(self, key: Hashable, value: Value) -> None:
        """Like `put`, but replaces an existing value."""
        self.pop(key)
        self.put(key, value)

    def pop(self, key: Hashable) -> Value | None:
        """Remove and return the value."""
        with self._guard:
            value, weight = self._kept.pop(key, (None, 0))
            self.size -= weight
            return value

    def find(self, key: Hashable, make: Callable[[], Value], holds: Callable[[Value], bool] | None = None) -> Value:
        """The value, made (outside of the lock) if it is missing or no longer valid."""
        found = self.get(key)
        if found is not None:
            if holds is None or holds(found):
                return found
            self.pop(key)
        found = make()
        self.put(key, found)
        return found
