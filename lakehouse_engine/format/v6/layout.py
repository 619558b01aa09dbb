"""What depends on the table version: where instants are, how their files are named, how commits are encoded.

Chosen once, when a table is opened; nothing outside this package compares versions.
"""

from __future__ import annotations

from typing import Protocol

from lakehouse_engine.errors import UnsupportedTableVersionError
from lakehouse_engine.format.v6.layout_v1 import LayoutV1
from lakehouse_engine.format.v8.layout import LayoutV2
from lakehouse_engine.format.v8.properties import LAYOUT_VERSION, check_readable, timeline_folder
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion

LAYOUT_VERSION_KEY = "hoodie.timeline.layout.version"


class Layout(Protocol):
    """Timeline layout of a table version. Implementations are stateless and picklable."""

    @property
    def timeline_folder(self) -> str:
        """Folder of the active timeline, relative to the table."""
        ...

    @property
    def orders_by_completion(self) -> bool:
        """Whether instants take effect in the order in which they were completed, and files of logs are named by their writers."""
        ...

    @property
    def clustering_action(self) -> Action:
        """The action of a pending clustering."""
        ...

    def file_name(self, instant: Instant) -> str:
        """Name of the file that puts `instant` into its state. Raises `FileNameError` where that action has no such state."""
        ...

    def parse_file_name(self, name: str) -> Instant | None:
        """The instant of a file in the timeline folder; None for any other file."""
        ...

    def decode_commit(self, data: bytes) -> HoodieCommitMetadata:
        """Commit, delta commit or replace commit metadata. Raises `CorruptInstantError` for empty or truncated bytes."""
        ...

    def encode_commit(self, metadata: HoodieCommitMetadata) -> bytes: ...

    def is_sealed_commit(self, data: bytes) -> bool:
        """Whether this engine wrote that commit metadata, whole or not."""
        ...


def layout_of(config: TableConfig) -> Layout:
    """The layout of a table. Raises `UnsupportedTableVersionError` for versions whose layout is not known, and as `check_readable` and
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
        return LayoutV1()
    check_readable(config)
    return LayoutV2(timeline_folder(config))
