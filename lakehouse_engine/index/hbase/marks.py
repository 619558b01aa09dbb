"""What a table remembers about its HBASE index: where entries may be wrong, in the property `lakehouse.index.hbase`.

Partitions are `behind` where rows came back, by a rollback or a restore, that may have no entry any more. They are `moving` from when an
action, by its instant, overwrites the entries of rows that it moves until it is completed. If it never is, they are behind, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from lakehouse_engine.errors import PropertiesError
from lakehouse_engine.model.table_config import HBASE_INDEX_KEY, TableConfig
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.timeline import Timeline

_MOST = 200
"""Partitions that are named; of more, the whole table is marked."""


@dataclass(frozen=True, slots=True)
class Marks:
    """`everything`: entries of the whole table may be wrong. `behind` and `moving` as in the module, with partition paths (None: all).

    `token` was made when the entries were last put from the beginning; the HBase table has it, too. `seen` are rollbacks and restores on
    the timeline whose rows have their entries, or are behind.
    """

    token: str = ""
    everything: bool = False
    behind: frozenset[str] = frozenset()
    moving: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()

    @classmethod
    def of(cls, config: TableConfig) -> Marks:
        """Raises `PropertiesError` for a value that does not parse."""
        text = config.properties.get(HBASE_INDEX_KEY)
        if not text:
            return cls()
        try:
            found = json.loads(text)
            moving = {str(time): None if paths is None else frozenset(map(str, paths)) for time, paths in found["moving"].items()}
            behind, seen = (frozenset(map(str, found[name])) for name in ("behind", "seen"))
            return cls(str(found["token"]), bool(found["everything"]), behind, moving, seen)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PropertiesError(
                f"{HBASE_INDEX_KEY}={text!r} does not parse; remove it, and build the index again (`lakehouse index rebuild`)",
                key=HBASE_INDEX_KEY,
            ) from error

    @property
    def text(self) -> str | None:
        """The property; None if there is nothing to remember."""
        if self == Marks():
            return None
        moving = {time: None if paths is None else sorted(paths) for time, paths in sorted(self.moving.items())}
        named = {"behind": sorted(self.behind), "moving": moving, "seen": sorted(self.seen)}
        return json.dumps({"token": self.token, "everything": self.everything, **named})

    def after(self, instant: str, partitions: Collection[str] | None) -> Marks:
        """Marks after a rollback or restore, which brought rows of some partitions back (None: of any)."""
        marks = self.with_behind(partitions)
        return replace(marks, seen=marks.seen | {instant})

    def with_behind(self, partitions: Collection[str] | None) -> Marks:
        """Marks with more partitions behind; None for the whole table."""
        behind = self.behind | frozenset(partitions or ())
        everything = self.everything or partitions is None or len(behind) > _MOST
        return replace(self, everything=everything, behind=frozenset() if everything else behind)

    def with_moving(self, instant: str, partitions: Collection[str]) -> Marks:
        """Marks with partitions from which an action moves rows."""
        return replace(self, moving={**self.moving, instant: frozenset(partitions) if len(partitions) <= _MOST else None})

    def without(self, instant: str) -> Marks:
        return replace(self, moving={time: paths for time, paths in self.moving.items() if time != instant})

    def wrong(self, timeline: Timeline) -> frozenset[str] | None:
        """Partitions whose entries may be wrong; None for the whole table."""
        done = timeline.completed()
        died = [paths for time, paths in self.moving.items() if not done.contains(time)]
        named = [paths for paths in died if paths is not None]
        return None if self.everything or len(named) < len(died) else self.behind.union(*named)


def stored_marks(storage: Storage) -> Marks:
    """The marks as they are stored now."""
    return Marks.of(ConfigStore(storage).read())


def store_marks(storage: Storage, marks: Marks) -> None:
    """Store marks, if they differ from the stored ones. The table lock is held."""
    if stored_marks(storage) != marks:
        ConfigStore(storage).update({HBASE_INDEX_KEY: marks.text})
