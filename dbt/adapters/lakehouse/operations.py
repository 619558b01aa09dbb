"""`dbt run-operation savepoint`, `restore` and the others: one engine call per selected table, and a readable answer.

None of them needs Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.outcomes import dbt_error
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.names import did_you_mean
from dbt.adapters.lakehouse.writing.selection import Selected
from dbt.adapters.lakehouse.writing.table_operations import flag, run_on_table, unsolved

TAKES_BACK = ("restore", "rollback", "delete_savepoint")
"""Operations that are tried on all selected tables before any is changed."""


@dataclass
class Report:
    """Results of an operation per table. `failures` are messages; if there are any, the run-operation fails."""

    operation: str
    dry_run: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Rows as a table under a heading."""
        head = f"{self.operation} (dry run: nothing is changed)" if self.dry_run else self.operation
        body = text_table(self.rows) if self.rows else "(nothing)"
        return "\n".join([head, body])

    def check(self) -> None:
        """Raise `DbtRuntimeError` with one line per failure, if there are any."""
        if self.failures:
            raise DbtRuntimeError("\n".join([f"{self.operation} failed:", *self.failures]))


def check_arguments(operation: str, known: Sequence[str], unknown: Mapping[str, Any] | None) -> None:
    """Raise `DbtRuntimeError` for arguments that the operation does not have; lists the valid ones."""
    for name in unknown or {}:
        raise DbtRuntimeError(f"{operation} has no argument '{name}'{did_you_mean(name, known)}; it takes {', '.join(known)}")


def operate(
    warehouse: Warehouse, operation: str, tables: Sequence[Selected], arguments: Mapping[str, Any], *, named: bool = True
) -> Report:
    """Run the operation on each table. An operation that takes something back is refused as a whole if one table refuses it.

    Tables that are selected by a tag or as all may be of a kind that the operation skips.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    report = Report(operation, dry_run=flag(given, "dry_run"))
    if operation == "compact" and not named:
        given["skip_copy_on_write"] = True
    if operation in TAKES_BACK and len(tables) > 1 and not report.dry_run:
        _each(warehouse, Report(operation), tables, {**given, "dry_run": True}, must=True)
    _each(warehouse, report, tables, given)
    return report


def _each(warehouse: Warehouse, report: Report, tables: Sequence[Selected], arguments: Mapping[str, Any], *, must: bool = False) -> None:
    for table in tables:
        try:
            # The table may be unreadable, which is what has to be repaired.
            find = warehouse.unopened if report.operation == "repair" else warehouse.table
            stored = find(table.schema, table.identifier)
            rows = run_on_table(stored, report.operation, arguments, table.options)
        except Exception as error:  # noqa: PERF203 - the other tables still get their answer
            found = dbt_error(error)
            if not isinstance(found, DbtRuntimeError):
                raise
            report.failures.append(f"{table}: {found.msg}")
        else:
            report.rows += [{"table": str(table), **row} for row in rows]
            report.failures += [f"{table}: {text}" for text in unsolved(report.operation, rows)]
    if must and report.failures:
        raise DbtRuntimeError("\n".join([f"{report.operation} is refused, and no table was changed:", *report.failures]))


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows (all with the same members) in columns; numbers are right-aligned."""
    names = list(rows[0])
    cells = [[_cell(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[place]) for line in cells)) for place, name in enumerate(names)]
    numeric = [all(type(row[name]) in (int, type(None)) for row in rows) for name in names]

    def line(texts: Sequence[str]) -> str:
        pieces = zip(texts, widths, numeric, strict=True)
        return "  ".join(text.rjust(width) if right else text.ljust(width) for text, width, right in pieces).rstrip()

    return "\n".join([line(names), line(["-" * width for width in widths]), *map(line, cells)])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
