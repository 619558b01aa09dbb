"""Everything that depends on the table version: timeline folder, names of instant files, encoding of commits, naming of logs.

Chosen once, when a table is opened; nothing outside this package compares versions.
"""

from __future__ import annotations

from typing import Protocol

from lakehouse_engine.errors import UnsupportedTableVersionError
from lakehouse_engine.format.new_table import NewTable
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.format.v8.properties import LAYOUT_VERSION, check_readable, timeline_folder
from lakehouse_engine.format.v8.table_format import FormatV8
from lakehouse_engine.model.archived import HistoryForm
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion

LAYOUT_VERSION_KEY = "hoodie.timeline.layout.version"


class TableFormat(Protocol):
    """The format of a family of table versions, a frozen, picklable value. Its members replace conditions on the version."""

    @property
    def timeline_folder(self) -> str:
        """Folder of the active timeline, relative to the table."""
        ...

    @property
    def orders_by_completion(self) -> bool:
        """True if instants take effect in the order of their completion."""
        ...

    @property
    def writers_at_once(self) -> bool:
        """True if writes may make their files beside others, without the table's lock (docs/adr/0064)."""
        ...

    @property
    def completes_with_time(self) -> bool:
        """True if an instant gets a completion time, which is part of the name of its completed file."""
        ...

    @property
    def logs_by_writer(self) -> bool:
        """True if a log file is named by the instant of its writer, False if by that of its slice."""
        ...

    @property
    def logs_partial_rows(self) -> bool:
        """True if logs may have rows with only some of the columns."""
        ...

    @property
    def history(self) -> HistoryForm:
        """The form in which archived instants are stored."""
        ...

    @property
    def stores_merge_mode(self) -> bool:
        """True if the properties store the merge mode that a payload class stands for."""
        ...

    def new_table(self, version: TableVersion, table: NewTable) -> dict[str, str]:
        """The properties of a new table of a version in this family. Raises as `merge_properties` if the merge mode is stored."""
        ...

    @property
    def clustering_action(self) -> Action:
        """The action of a pending clustering."""
        ...

    def file_name(self, instant: Instant) -> str:
        """Name of the file that puts `instant` into its state. Raises `FileNameError` if the action has no such state."""
        ...

    def parse_file_name(self, name: str) -> Instant | None:
        """The instant of a file in the timeline folder; None for any other file."""
        ...

    def decode_commit(self, data: bytes) -> HoodieCommitMetadata:
        """Decode commit, delta commit or replace commit metadata. Raises `CorruptInstantError` for empty or truncated bytes."""
        ...

    def encode_commit(self, metadata: HoodieCommitMetadata) -> bytes: ...

    def is_sealed_commit(self, data: bytes) -> bool:
        """True if this engine wrote the commit metadata, intact or not."""
        ...


def format_of(config: TableConfig) -> TableFormat:
    """The format of a table. Raises `UnsupportedTableVersionError` for an unknown timeline layout, and as `check_readable` and
    `timeline_folder`.
    """
    is_six = config.version is TableVersion.SIX
    wanted = "1" if is_six else LAYOUT_VERSION
    stated = config.properties.get(LAYOUT_VERSION_KEY, wanted).strip()
    if stated != wanted:
        raise UnsupportedTableVersionError(
            f"{LAYOUT_VERSION_KEY}={stated!r}: tables of version {int(config.version)} have the timeline layout {wanted}, and only that can"
            " be opened; if Hudi left the table so, let it finish that (its procedures upgrade_table and downgrade_table)",
            table=config.name,
        )
    if is_six:
        return FormatV6()
    check_readable(config)
    return FormatV8(timeline_folder(config))


def format_of_version(version: TableVersion) -> TableFormat:
    """The format of a new table, with the timeline in the version's default folder."""
    return FormatV6() if version is TableVersion.SIX else FormatV8()
