"""What a table remembers about its HBASE index: where entries may be wrong, in the property `lakehouse.index.hbase`.

Partitions are `behind` where rows came back, by a rollback or a restore, that may have no entry any more. They are `moving` from when an
action, by its instant, overwrites the entries of rows that it moves until it is completed. If it never is, they are behind, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from lakehouse_engine.errors import PropertiesError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.timeline import Timeline

MARKS_KEY = "lakehouse.index.hbase"
_MOST = 200
"""Partitions that are named; of more, the whole table is marked."""


@dataclass(frozen=True, slots=True)
class Marks:
    """`everything`: entries of the whole table may be wrong. `behind` and `moving` as in the module, with partition paths.

    `token` was made when the entries were last put from the beginning; the HBase table has it, too.
    """

    token: str = ""
    everything: bool = False
    behind: frozenset[str] = frozenset()
    moving: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, config: TableConfig) -> Marks:
        """Raises `PropertiesError` for a value that does not parse."""
        text = config.properties.get(MARKS_KEY)
        if not text:
            return cls()
        try:
            found = json.loads(text)
            moving = {str(instant): frozenset(map(str, paths)) for instant, paths in found["moving"].items()}
            return cls(str(found["token"]), bool(found["everything"]), frozenset(map(str, found["behind"])), moving)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PropertiesError(
                f"{MARKS_KEY}={text!r} does not parse; remove it, and build the index again (`lakehouse index rebuild`)", key=MARKS_KEY
            ) from error

    @property
    def text(self) -> str | None:
        """The property; None if there is nothing to remember."""
        if self == Marks():
            return None
        moving = {instant: sorted(paths) for instant, paths in sorted(self.moving.items())}
        return json.dumps({"token": self.token, "everything": self.everything, "behind": sorted(self.behind), "moving": moving})

    @property
    def settled(self) -> Marks:
        """Marks of entries that are right."""
        return Marks(self.token)

    def with_behind(self, partitions: Collection[str] | None) -> Marks:
        """Marks with more partitions behind; None for the whole table."""
        behind = self.behind | frozenset(partitions or ())
        return replace(self, everything=self.everything or partitions is None or len(behind) > _MOST, behind=behind)

    def with_moving(self, instant: str, partitions: Collection[str]) -> Marks:
        """Marks with partitions from which an action moves rows. Raises nothing: where there are too many, the whole table is behind."""
        if len(partitions) > _MOST:
            return self.with_behind(None)
        return replace(self, moving={**self.moving, instant: frozenset(partitions)})

    def without(self, instant: str) -> Marks:
        return replace(self, moving={time: paths for time, paths in self.moving.items() if time != instant})

    def wrong(self, timeline: Timeline) -> frozenset[str] | None:
        """Partitions whose entries may be wrong; None for the whole table."""
        if self.everything:
            return None
        done = timeline.completed()
        died = [paths for time, paths in self.moving.items() if not done.contains(time)]
        return self.behind.union(*died)


def stored_marks(storage: Storage) -> Marks:
    """The marks as they are stored now."""
    return Marks.of(ConfigStore(storage).read())


def store_marks(storage: Storage, marks: Marks) -> None:
    """Store marks, if they differ from the stored ones. The table lock is held."""
    if stored_marks(storage) != marks:
        ConfigStore(storage).update({MARKS_KEY: marks.text})
