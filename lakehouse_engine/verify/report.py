"""The result of a verification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import LakehouseError

Progress = Callable[[str, int, int], None]
"""Progress callback: what is being checked, how many are done, and how many there are."""


class FindingKind(StrEnum):
    """Kind of a finding of `verify`."""

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
"""Kinds of findings about data files, which only a backup or a restore repairs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `path` is a file relative to the table, or a partition path for duplicate keys."""

    kind: FindingKind
    path: str
    message: str

    @classmethod
    def of(cls, kind: FindingKind, path: str, error: LakehouseError) -> Finding:
        """Finding from an error, about the file that it names, or else about `path`."""
        return cls(kind, error.context.get("path", path), error.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was checked, and what is wrong. `instant` is the newest completed write, None without one.

    `files`, `bytes` and `rows` describe the current table; `retained_files` also counts files of earlier commits and savepoints. `rows` is
    0 if no data was read. `skipped` lists what could not be checked, and why; `way_out` says what repairs the findings, None without
    findings.
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
