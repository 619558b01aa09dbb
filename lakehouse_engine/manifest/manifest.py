"""Which files make a table and must be there, whatever a listing finds (docs/adr/0065)."""

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
    """The base file, or a log file, that a group must have; `path` is a description where only the group and the instant are known."""

    group: FileGroupId
    instant_time: str
    path: str

    def __str__(self) -> str:
        return self.path


class Manifest(Protocol):
    """The files of a table at one state of its timeline. `as_of` is a moment, None for now; `partitions` None means all of them.

    Methods raise `MetadataError` where something that would tell is damaged.
    """

    @property
    def order(self) -> Order:
        """Which instant comes after which."""
        ...

    @property
    def replaced_at(self) -> Mapping[FileGroupId, str]:
        """Every group that was replaced, with the instant time of the first write that did so. Its files may still be there."""
        ...

    def partitions(self) -> Sequence[str] | None:
        """Paths of the partitions with live files, sorted; None where the manifest does not tell."""
        ...

    def written_partitions(self) -> Iterable[str]:
        """Paths of all partitions that files were written to, as far as that can be told: damage is passed over."""
        ...

    def named_partitions(self, as_of: str | None) -> set[str]:
        """Paths of the partitions that `live` and `promises` may say something of."""
        ...

    def live(self, as_of: str | None, partitions: frozenset[str] | None) -> Mapping[FileGroupId, ExpectedFile]:
        """The base file that each group must have. Groups that were replaced may be among them."""
        ...

    def bases(self, as_of: str | None, partitions: frozenset[str] | None) -> Iterable[WrittenFile]:
        """Base files that were written, with their sizes, of live slices at least."""
        ...

    def promises(self, as_of: str | None, partitions: frozenset[str] | None = None) -> Mapping[FileGroupId, Sequence[LogPromise]]:
        """What was written to log files of live slices at least; nothing for copy-on-write tables."""
        ...

    def told(self, as_of: str | None) -> ToldLogs:
        """The writes of which `promises` of the same moment tells every log file."""
        ...

    def has(self, base: BaseFile) -> bool:
        """Whether a listed base file of a completed instant is part of the table, now or earlier; True where that is not known."""
        ...

    def has_log(self, log: LogFile) -> bool:
        """Whether a completed write named a log file; False where it is not known."""
        ...
