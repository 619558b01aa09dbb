"""Procedures that change the version of a table, with Hudi's names and arguments; the answer has what was done, line by line."""

from __future__ import annotations

from lakehouse_engine.model.services import VersionChange
from lakehouse_engine.sql.procedures.arguments import TABLE, Argument, Kind
from lakehouse_engine.sql.procedures.procedure import FLAG, LONG, TEXT, Rows, Values, procedure
from lakehouse_engine.table_services import TableServices

_COLUMNS = {"result": FLAG, "from_version": LONG, "to_version": LONG, "step": TEXT}
_ARGUMENTS = (
    TABLE,
    Argument("to_version", Kind.VERSION, required=True),
    Argument("dry_run", Kind.FLAG, False),
    Argument("options", Kind.OPTIONS, {}),
)


def _upgrade(table: TableServices, values: Values) -> Rows:
    return _told(table.upgrade(values["to_version"], dry_run=values["dry_run"], options=values["options"]))


def _downgrade(table: TableServices, values: Values) -> Rows:
    return _told(table.downgrade(values["to_version"], dry_run=values["dry_run"], options=values["options"]))


def _told(change: VersionChange) -> Rows:
    """One row for each step and note; one where nothing was to be done."""
    lines = (*change.steps, *(f"note: {note}" for note in change.notes)) or ("the table has that version",)
    return ((not change.dry_run, change.from_version, change.to_version, line) for line in lines)


VERSIONS = (
    procedure("upgrade_table", _ARGUMENTS, _COLUMNS, _upgrade),
    procedure("downgrade_table", _ARGUMENTS, _COLUMNS, _downgrade),
)
