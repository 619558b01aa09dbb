"""What a verification says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import LakehouseError

Progress = Callable[[str, int, int], None]
"""Called with what is looked at, how many of it are done, and how many there are."""


class FindingKind(StrEnum):
    CORRUPT_INSTANT = "corrupt_instant"
    CORRUPT_ARCHIVE = "corrupt_archive"
    CORRUPT_CHECKPOINT = "corrupt_checkpoint"
    CORRUPT_PROPERTIES = "corrupt_properties"
    CORRUPT_METAFILE = "corrupt_metafile"
    LEFTOVER_FILE = "leftover_file"
    MISSING_FILE = "missing_file"
    WRONG_SIZE = "wrong_size"
    UNREADABLE_FILE = "unreadable_file"
    NEWER_ROWS = "newer_rows"
    DUPLICATE_KEY = "duplicate_key"


DATA = (FindingKind.MISSING_FILE, FindingKind.WRONG_SIZE, FindingKind.UNREADABLE_FILE)
"""Findings about data files, which nothing but a backup, or going back, makes whole."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `path` is a file relative to the table, a partition path for duplicate keys."""

    kind: FindingKind
    path: str
    message: str

    @classmethod
    def of(cls, kind: FindingKind, path: str, error: LakehouseError) -> Finding:
        """What an error says, about the file that it names, or else about `path`."""
        return cls(kind, error.context.get("path", path), error.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was looked at, and what is wrong with it. `instant` is the newest completed write, None where there is none.

    `files`, `bytes` and `rows` are those of the table as it is; `retained_files` counts also those that earlier commits and savepoints
    need. `rows` is 0 where no data was read. `skipped` says what could not be checked, and why;
    `way_out` what leads out of the findings, None where there are none.
    """

    table: str
    instant: str | None
    instants: int
    files: int
    bytes: int
    rows: int
    retained_files: int
    findings: tuple[Finding, ...]
    skipped: tuple[str, ...] = ()
    way_out: str | None = None

    @property
    def ok(self) -> bool:
        return not self.findings
