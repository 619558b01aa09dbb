"""What a history is: how many processes do what to which table. Sizes and seeds come from the environment.

LAKEHOUSE_DEPTH          full: six writers of 200 steps
LAKEHOUSE_HISTORIES_SEED the seed that a failed run printed
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field, replace

from tests.support.depth import IS_FULL

RETAINED = 12
"""Commits whose files a clean keeps: what readers may ask for."""
BEAT_MS, MISSES = 150, 2
"""A paused writer is dead to others, as far as its heartbeat says, after so many milliseconds so many times."""

OPTIONS = {
    "hoodie.client.heartbeat.interval_in_ms": BEAT_MS,
    "hoodie.client.heartbeat.tolerable.misses": MISSES,
    "hoodie.clean.commits.retained": RETAINED,
    "hoodie.keep.min.commits": RETAINED + 4,
    "hoodie.keep.max.commits": RETAINED + 10,
    "hoodie.write.lock.wait_time_ms": 120_000,
}
"""Of every process."""
INLINE_COMPACTION = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": 4}
INLINE_CLUSTERING = {
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": 3,
    "hoodie.clustering.plan.strategy.sort.columns": "id",
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """`operations` are those of each writer. Events, kills and pauses, are of all writers together."""

    writers: int = 4
    operations: int = 12
    readers: int = 2
    kills: int = 3
    pauses: int = 3
    long_pauses: int = 1

    @classmethod
    def here(cls) -> Sizes:
        return cls(6, 200, 3, 60, 60, 12) if IS_FULL else cls()


@dataclass(frozen=True, slots=True)
class Plan:
    """`properties` are the table's, `options` those of all processes, `mutant` what is broken in the writers (see `mutants`)."""

    workload: str
    table_type: str
    properties: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, object], ...] = ()
    ordering: bool = False
    is_global: bool = True
    mutant: str = ""
    sizes: Sizes = field(default_factory=Sizes.here)
    seed: int = 0

    def seeded(self, seed: int) -> Plan:
        return replace(self, seed=seed)

    @property
    def all_options(self) -> dict[str, object]:
        return {**OPTIONS, **dict(self.options)}

    @property
    def merges_on_read(self) -> bool:
        return self.table_type == "mor"


def seed() -> int:
    """Told to whoever runs the tests, so that it can be given again."""
    given = int(os.environ.get("LAKEHOUSE_HISTORIES_SEED", random.SystemRandom().randrange(10**6)))
    print(f"LAKEHOUSE_HISTORIES_SEED={given}")
    return given
