"""The zoo: every kind of table, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.interop.zoo import features, indexes, keys, partitions, payloads, services, statements
from tests.interop.zoo.kind import Kind
from tests.interop.zoo.untried import UNTRIED

ALL = (statements, payloads, indexes, keys, partitions, services, features)
EVERY: Mapping[str, Kind] = {kind.name: kind for group in ALL for kind in group.KINDS}
"""All kinds, those that are untried too."""


def tried(kind: Kind) -> Kind:
    """The kind as made by those Hudis with which it was tried."""
    return replace(kind, makers=tuple(maker for maker in kind.makers if kind.name not in UNTRIED[maker]))


KINDS: Mapping[str, Kind] = {name: tried(kind) for name, kind in EVERY.items() if tried(kind).makers}
