"""The zoo: every kind of table, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.interop.zoo import features, indexes, keys, partitions, payloads, services, statements
from tests.interop.zoo.kind import Kind

ALL = (statements, payloads, indexes, keys, partitions, services, features)
KINDS: Mapping[str, Kind] = {kind.name: kind for group in ALL for kind in group.KINDS}
