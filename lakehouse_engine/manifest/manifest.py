"""Files that make a table and must exist, whatever a listing finds (docs/adr/0065)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import WrittenFile
from lakehouse_engine.model.logged import LogPromise, ToldLogs
from lakehouse_engine.model.order import Order


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """Base or log file that a group must have; `path` is a description if only group and instant are known."""

    group: FileGroupId
    instant_time: str
    path: str

    def __str__(self) -> str:
        return self.path


class Manifest(Protocol):
    """Files of a table at one state of its timeline. `as_of` is a moment, None for now; `partitions` None means all.

    Methods raise `MetadataError` if the evidence is damaged.
    """

    @property
    def order(self) -> Order:
        """Order of the table's instants."""
        ...

    @property
    def replaced_at(self) -> Mapping[FileGroupId, str]:
        """Every replaced group, with the instant of the first write that replaced it. Its files may still exist."""
        ...

    def partitions(self) -> Sequence[str] | None:
        """Paths of partitions with live files, sorted; None if the manifest does not know."""
        ...

    def written_partitions(self) -> Iterable[str]:
        """Paths of all partitions that files were written to, as far as known; damage is skipped."""
        ...

    def named_partitions(self, as_of: str | None) -> set[str]:
        """Paths of partitions that `live` and `promises` may mention."""
        ...

    def live(self, as_of: str | None, partitions: frozenset[str] | None) -> Mapping[FileGroupId, ExpectedFile]:
        """The base file that each group must have. May include replaced groups."""
        ...

    def bases(self, as_of: str | None, partitions: frozenset[str] | None) -> Iterable[WrittenFile]:
        """Base files that were written, with sizes; at least those of live slices."""
        ...

    def promises(self, as_of: str | None, partitions: frozenset[str] | None = None) -> Mapping[FileGroupId, Sequence[LogPromise]]:
        """What was written to log files, at least for live slices; empty for copy-on-write tables."""
        ...

    def told(self, as_of: str | None) -> ToldLogs:
        """Writes for which `promises` at the same moment lists every log file."""
        ...

    def has(self, base: BaseFile) -> bool:
        """True if a base file of a completed instant is or was part of the table, or if that is unknown."""
        ...

    def has_log(self, log: LogFile) -> bool:
        """True if a completed write named a log file; False if unknown."""
        ...
