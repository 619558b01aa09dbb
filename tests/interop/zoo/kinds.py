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


def of_makers(*, tried: bool) -> Mapping[str, Kind]:
    """Each kind as made by those Hudis with which it was tried, or was not."""
    found = {
        name: replace(kind, makers=tuple(maker for maker in kind.makers if (name in UNTRIED[maker]) is not tried))
        for name, kind in EVERY.items()
    }
    return {name: kind for name, kind in found.items() if kind.makers}


KINDS: Mapping[str, Kind] = of_makers(tried=True)
