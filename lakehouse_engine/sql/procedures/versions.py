"""Procedures that change the version of a table, with Hudi's names and arguments; the answer has what was done, line by line."""

from __future__ import annotations

from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.services import VersionChange
from lakehouse_engine.sql.procedures.arguments import TABLE, Argument, Kind
from lakehouse_engine.sql.procedures.procedure import FLAG, LONG, TEXT, Rows, Values, procedure
from lakehouse_engine.table_services import TableServices

_VERSIONS = {"six": 6, "6": 6, "eight": 8, "8": 8, "nine": 9, "9": 9}
"""Hudi's words for versions, and their numbers."""
_COLUMNS = {"result": FLAG, "from_version": LONG, "to_version": LONG, "step": TEXT}
_ARGUMENTS = (
    TABLE,
    Argument("to_version", required=True),
    Argument("dry_run", Kind.FLAG, False),
    Argument("options", Kind.OPTIONS, {}),
)


def _upgrade(table: TableServices, values: Values) -> Rows:
    return _told(table.upgrade(_version(values), dry_run=values["dry_run"], options=values["options"]))


def _downgrade(table: TableServices, values: Values) -> Rows:
    return _told(table.downgrade(_version(values), dry_run=values["dry_run"], options=values["options"]))


def _version(values: Values) -> int:
    found = _VERSIONS.get(str(values["to_version"]).strip().lower())
    if found is None:
        raise OptionError(f"to_version => {values['to_version']!r} is none of SIX, EIGHT and NINE")
    return found


def _told(change: VersionChange) -> Rows:
    """One row for each step and note; one where nothing was to be done."""
    lines = (*change.steps, *(f"note: {note}" for note in change.notes)) or ("the table has that version",)
    return ((not change.dry_run, change.from_version, change.to_version, line) for line in lines)


VERSIONS = (
    procedure("upgrade_table", _ARGUMENTS, _COLUMNS, _upgrade),
    procedure("downgrade_table", _ARGUMENTS, _COLUMNS, _downgrade),
)
