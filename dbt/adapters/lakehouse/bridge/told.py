"""What there is to say of a table: for documentation, freshness and operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.bridge.outcomes import table_type_of
from dbt.adapters.lakehouse.later import Later
from dbt.adapters.lakehouse.names import is_own_savepoint

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse

_describe = Later("lakehouse_engine.cli.describe")
_footer = Later("lakehouse_engine.files.footer")
_order = Later("lakehouse_engine.timeline.order")
_repair = Later("lakehouse_engine.repair")
_verify = Later("lakehouse_engine.verify")


def is_merge_on_read(table: Any) -> bool:
    return table_type_of(table.config.table_type) == "mor"


def last_write(table: Any) -> datetime | None:
    """When the newest completed write happened, in UTC; None for a table without one."""
    newest = table.timeline.completed().writes().last()
    return _moment(newest.requested_time, table.config.timeline_timezone) if newest else None


def kept_savepoints(warehouse: Warehouse, schema: str, identifier: str) -> list[str]:
    """Names (else instants) of a table's savepoints that somebody took; those of protected runs were made for less."""
    savepoints = warehouse.table(schema, identifier).savepoints()
    return [str(one.name or one.instant) for one in savepoints if not is_own_savepoint(one.name)]


def oldest_first(responses: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Responses of writes, by their `instant`."""
    found: list[Mapping[str, Any]] = _order.in_time_order(responses, lambda one: str(one["instant"]))
    return found


def _moment(instant_time: str, zone: str) -> datetime:
    digits = instant_time.ljust(17, "0")[:17]
    moment = datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(microsecond=int(digits[14:]) * 1000)  # noqa: DTZ007 - its zone is `zone`
    return moment.replace(tzinfo=timezone.utc) if zone == "UTC" else moment.astimezone(timezone.utc)


def facts(table: Any) -> dict[str, Any]:
    """What a table is, as `lakehouse info` says it."""
    return _describe.describe_table(table.state)


def is_unsolved(disorder: str) -> bool:
    """Whether it is something that a repair may leave and somebody has to see to."""
    return disorder in map(str, _repair.UNSOLVED)


def findings(table: Any, *, quick: bool = False) -> tuple[str | None, list[str]]:
    """The newest completed write, and what is wrong with the table, with the ways out last: nothing, if it is whole.

    `quick` reads no data file.
    """
    report = _verify.verify(table.state, quick=quick)
    wrong = [f"{finding.kind} {finding.path}: {finding.message}" for finding in report.findings]
    return report.instant, wrong + ([f"way out: {report.way_out}"] if wrong and report.way_out else [])


def statistics(table: Any) -> dict[str, Any]:
    """What documentation shows of a table, by the ids of `catalog.STATISTICS`.

    Rows are counted from file footers. What logs make of them only a reading of the table tells: with logs there is no number.
    """
    state = table.state
    newest = state.timeline.completed().writes().last()
    slices = list(state.view.latest_slices())
    bases = [piece.base_file for piece in slices if piece.base_file is not None]
    logs = [log for piece in slices for log in piece.log_files]
    return {
        "rows": None if logs else sum(_footer.read_footer(state.storage, base).num_rows for base in bases),
        "bytes": sum(max(file.size, 0) for file in (*bases, *logs)),
        "files": len(bases) + len(logs),
        "last_commit": newest.requested_time if newest else None,
        "last_operation": str(state.commit_metadata(newest).operation_type).lower() if newest else None,
        "table_type": table_type_of(state.config.table_type),
        "record_key": ", ".join(state.config.record_key_fields),
        "partition_by": ", ".join(state.config.partition_fields),
    }
