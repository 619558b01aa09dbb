"""Timeline layout 2 (table versions 8 and 9): instants in `.hoodie/timeline`, named with completion times, commits as Avro."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from lakehouse_engine.errors import FileNameError
from lakehouse_engine.format.new_table import NewTable
from lakehouse_engine.format.v6.metadata_avro import is_sealed
from lakehouse_engine.format.v8.commits import decode_commit_metadata, encode_commit_metadata
from lakehouse_engine.format.v8.new_table import new_table_properties
from lakehouse_engine.model.archived import HistoryForm
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.table_version import TableVersion

_INSTANT_FILE = re.compile(r"([0-9]+)(?:_([0-9]+))?\.([a-z]+(?:\.[a-z]+)?)")


def _pending_extensions() -> dict[str, tuple[Action, State]]:
    known = {f"{action}.{state}": (action, state) for action in Action for state in (State.REQUESTED, State.INFLIGHT)}
    # The inflight file of a commit, alone among actions, does not name its action. A savepoint is never requested.
    known["inflight"] = known.pop("commit.inflight")
    del known["savepoint.requested"]
    return known


_PENDING = _pending_extensions()
_EXTENSIONS = {value: key for key, value in _PENDING.items()}
_COMPLETED = {str(action): action for action in Action if action.completes_as is action}


@dataclass(frozen=True, slots=True)
class FormatV8:
    """`TableFormat` of table versions 8 and 9."""

    timeline_folder: str = ".hoodie/timeline"
    orders_by_completion: bool = True
    writers_at_once: bool = True
    completes_with_time: bool = True
    logs_by_writer: bool = True
    logs_partial_rows: bool = True
    history: HistoryForm = HistoryForm.LSM
    stores_merge_mode: bool = True
    clustering_action: Action = Action.CLUSTERING

    def file_name(self, instant: Instant) -> str:
        """As `TableFormat.file_name`; also raises `FileNameError` for a completed instant without a completion time."""
        if instant.is_completed:
            if instant.completed_at is None:
                raise FileNameError(f"{instant} has no completion time, which is part of its file's name", instant=instant.requested_time)
            return f"{instant.requested_time}_{instant.completed_at}.{instant.action.completes_as}"
        extension = _EXTENSIONS.get((instant.action, instant.state))
        if extension is None:
            raise FileNameError(f"a {instant.action} has no {instant.state} state", instant=instant.requested_time)
        return f"{instant.requested_time}.{extension}"

    def parse_file_name(self, name: str) -> Instant | None:
        """As `TableFormat.parse_file_name`. Raises `FileNameError` for a completed instant without a completion time: skipping it would
        hide a commit.
        """
        match = _INSTANT_FILE.fullmatch(name)
        if match is None:
            return None
        requested_time, completed_at, extension = match.groups()
        if extension in _COMPLETED:
            if completed_at is None:
                raise FileNameError(
                    f"{name!r} is a completed instant without a completion time, as an unfinished upgrade leaves it; finish the upgrade"
                    " with Hudi: CALL upgrade_table(table => '<its name in Spark>', to_version => 'NINE')",
                    instant=requested_time,
                )
            return Instant(requested_time, _COMPLETED[extension], State.COMPLETED, completed_at)
        known = _PENDING.get(extension) if completed_at is None else None
        return Instant(requested_time, *known) if known else None

    def new_table(self, version: TableVersion, table: NewTable) -> dict[str, str]:
        """As `TableFormat.new_table`. Version 9 stores no payload class for a mode that has only its own."""
        return new_table_properties(version, table if version is TableVersion.EIGHT else replace(table, payload_class=None))

    def decode_commit(self, data: bytes) -> HoodieCommitMetadata:
        return decode_commit_metadata(data)

    def encode_commit(self, metadata: HoodieCommitMetadata) -> bytes:
        return encode_commit_metadata(metadata)

    def is_sealed_commit(self, data: bytes) -> bool:
        return is_sealed(data)
