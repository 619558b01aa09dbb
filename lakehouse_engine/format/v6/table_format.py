"""Timeline layout 1 (table version 6): instants flat in `.hoodie`, commits as JSON (hudi-format 2.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakehouse_engine.errors import FileNameError
from lakehouse_engine.format.new_table import NewTable
from lakehouse_engine.format.v6.metadata_json import decode_commit_metadata, encode_commit_metadata, is_sealed_commit
from lakehouse_engine.format.v6.new_table import new_table_properties
from lakehouse_engine.model.archived import HistoryForm
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.table_version import TableVersion

_INSTANT_FILE = re.compile(r"([0-9]+)\.([a-z]+(?:\.[a-z]+)?)")


def _extensions() -> dict[str, tuple[Action, State]]:
    """Extension of a state file, after the instant time -> its action and state. Other files in the folder are not instants."""
    actions = [action for action in Action if action is not Action.CLUSTERING]
    known: dict[str, tuple[Action, State]] = {}
    known |= {f"{action}.{state}": (action, state) for action in actions for state in (State.REQUESTED, State.INFLIGHT)}
    known |= {str(action): (action, State.COMPLETED) for action in actions if action.completes_as is action}
    # The inflight file of a commit, alone among actions, does not name its action. A savepoint is never requested.
    known["inflight"] = known.pop("commit.inflight")
    del known["savepoint.requested"]
    return known


_ACTION_AND_STATE = _extensions()
_EXTENSION = {value: key for key, value in _ACTION_AND_STATE.items()}


@dataclass(frozen=True, slots=True)
class FormatV6:
    """`TableFormat` of table version 6."""

    timeline_folder: str = ".hoodie"
    orders_by_completion: bool = False
    writers_at_once: bool = False
    completes_with_time: bool = False
    logs_by_writer: bool = False
    logs_partial_rows: bool = False
    history: HistoryForm = HistoryForm.ARCHIVE
    stores_merge_mode: bool = False
    clustering_action: Action = Action.REPLACE_COMMIT

    def file_name(self, instant: Instant) -> str:
        named_as_completed = instant.is_completed or instant.action is Action.CLUSTERING
        action = instant.action.completes_as if named_as_completed else instant.action
        extension = _EXTENSION.get((action, instant.state))
        if extension is None:
            raise FileNameError(f"a {instant.action} has no {instant.state} state", instant=instant.requested_time)
        return f"{instant.requested_time}.{extension}"

    def parse_file_name(self, name: str) -> Instant | None:
        match = _INSTANT_FILE.fullmatch(name)
        known = _ACTION_AND_STATE.get(match[2]) if match else None
        return Instant(match[1], *known) if match and known else None

    def new_table(self, version: TableVersion, table: NewTable) -> dict[str, str]:
        return new_table_properties(table)

    def decode_commit(self, data: bytes) -> HoodieCommitMetadata:
        return decode_commit_metadata(data)

    def encode_commit(self, metadata: HoodieCommitMetadata) -> bytes:
        return encode_commit_metadata(metadata)

    def is_sealed_commit(self, data: bytes) -> bool:
        return is_sealed_commit(data)
