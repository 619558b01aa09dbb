"""What calls depend on each other: two that do not may be made in either order, and only one of the orders needs a look."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

Place = tuple[str, object]
"""("file", path), ("entries", folder), ("below", folder), ("folder", path), or ("lock", which)."""
_EXCLUSIVE = frozenset({"file", "lock"})
"""Writes of two files of a folder change its listing alike in either order; those of one file do not."""


@dataclass(frozen=True, slots=True)
class Footprint:
    reads: frozenset[Place] = frozenset()
    writes: frozenset[Place] = frozenset()

    def with_writes(self, *places: Place) -> Footprint:
        return replace(self, writes=self.writes.union(places))

    def needs_order(self, other: Footprint) -> bool:
        """Whether it can make a difference which of the two comes first."""
        if not self.writes.isdisjoint(other.reads) or not self.reads.isdisjoint(other.writes):
            return True
        return any(place[0] in _EXCLUSIVE for place in self.writes & other.writes)

    @classmethod
    def union(cls, parts: Iterable[Footprint]) -> Footprint:
        found = list(parts)
        return cls(frozenset().union(*(one.reads for one in found)), frozenset().union(*(one.writes for one in found)))


def of_file(path: str) -> Footprint:
    """Reading a file, or asking for it: the path may be a folder's, too."""
    return Footprint(frozenset({("file", path), ("folder", path)}))


def of_listing(folder: str) -> Footprint:
    return Footprint(frozenset({("entries", folder)}))


def of_walk(folder: str) -> Footprint:
    return Footprint(frozenset({("below", folder)}))


def of_change(touched: Iterable[str], appeared_or_gone: Iterable[str] = ()) -> Footprint:
    """A change of the files `touched`, with which some folders came into being or went."""
    writes: set[Place] = set()
    for path in touched:
        folders = ancestors(path)
        writes.update({("file", path), ("entries", folders[0])})
        writes.update(("below", folder) for folder in folders)
    for folder in appeared_or_gone:
        if folder:
            writes.update({("folder", folder), ("entries", ancestors(folder)[0])})
    return Footprint(frozenset(), frozenset(writes))


def ancestors(path: str) -> list[str]:
    """The folders above a path, the nearest first; the root is the empty text."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]

