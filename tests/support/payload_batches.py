"""Batches that every payload class is tried with, and the rows that they must leave: dicts and loops, sharing no code with the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
TOASTED = "__debezium_unavailable_value"
COMMON = [("id", pa.string()), ("a", pa.string()), ("b", pa.string())]


@dataclass(frozen=True)
class Scenario:
    """One payload class: `order` is its ordering field, `mark` the column and the value that delete.

    `by_1x` is for tables that Hudi 1.x made, which has changed two rules, and lets no ordering value decide between records of logs that
    decides nothing elsewhere.
    """

    payload: str
    order: str = "ts"
    mark: tuple[str, Any] = ("_hoodie_is_deleted", True)
    kept: Any = False
    by_1x: bool = False

    @property
    def schema(self) -> pa.Schema:
        order = pa.string() if self.order == "_event_seq" else pa.int64()
        mark = pa.bool_() if self.mark[1] is True else pa.string()
        return pa.schema([*COMMON, (self.order, order), (self.mark[0], mark)])

    def row(self, key: str, order: int, a: str | None, b: str | None = "b", *, gone: bool = False) -> Row:
        value = f"000001.{order:06d}" if self.order == "_event_seq" else order
        return {"id": key, "a": a, "b": b, self.order: value, self.mark[0]: self.mark[1] if gone else self.kept}

    def table(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=self.schema)

    def batches(self) -> list[list[Row]]:
        """Newer, older and equal rows, nulls, values that were not sent, deletions of each kind, several rows of a key."""
        row = self.row
        changed = ("newer", "older", "equal", "null_newer", "null_older", "toasted", "twice", "twice_equal", "twice_nulls")
        deleted = ("del_newer", "del_older", "del_equal", "del_back")
        first = [row(key, 10, "a1", "b1") for key in (*changed, *deleted, "untouched")]
        first += [row("null_stored", 10, None, "b1")]
        second = [
            row("newer", 11, "a2"),
            row("older", 9, "a2"),
            row("equal", 10, "a2"),
            row("null_newer", 11, None),
            row("null_older", 9, None),
            row("null_stored", 9, "a2"),
            row("toasted", 11, TOASTED),
            row("twice", 12, "up"),
            row("twice", 11, "down"),
            row("twice_equal", 12, "one"),
            row("twice_equal", 12, "two"),
            row("twice_nulls", 12, "older", None),
            row("twice_nulls", 13, None, "newer"),
            row("del_newer", 11, "a2", gone=True),
            row("del_older", 9, "a2", gone=True),
            row("del_equal", 10, "a2", gone=True),
            row("del_back", 11, "a2", gone=True),
            row("new", 5, "a2"),
            row("new_deleted", 5, "a2", gone=True),
        ]
        third = [
            row("newer", 10, "a3"),
            row("older", 12, None, "b3"),
            row("twice", 12, "a3", None),
            row("del_back", 12, "a3"),
            row("new", 5, "a3", None),
            row("untouched", 10, None, None),
        ]
        return [first, second, third]

    def expected(self, batches: int = 3, *, logs: str = "") -> list[Row]:
        """What so many batches leave, in logs that are never compacted: of `updates`, or of all rows behind the first batch."""
        stored: dict[str, Row] = {}
        logged: set[str] = set()
        for number, batch in enumerate(self.batches()[:batches]):
            for row in self._reduced(batch):
                key = row["id"]
                # Among records of logs Hudi 0.15 goes by ordering values, whatever the payload.
                if key in logged and key in stored and row[self.order] < stored[key][self.order] and self.drops_in_logs:
                    continue
                if (logs == "all" and number) or (logs == "updates" and key in stored):
                    logged.add(key)
                after = self._merged(stored.pop(key, None), row)
                if after is not None:
                    stored[key] = after
        return sorted(stored.values(), key=lambda row: row["id"])

    @property
    def drops_in_logs(self) -> bool:
        return self.payload.startswith(("Overwrite", "AWS")) and not self.by_1x

    # rules of Hudi 0.15 (org.apache.hudi.common.model), for copy-on-write tables

    def _reduced(self, batch: list[Row]) -> list[Row]:
        found: dict[str, Row] = {}
        for row in batch:
            before = found.get(row["id"])
            found[row["id"]] = row if before is None else self._pre_combined(before, row)
        return list(found.values())

    def _pre_combined(self, before: Row, row: Row) -> Row:
        older = before[self.order] > row[self.order]
        if self.payload == "FirstValueAvroPayload":
            return before if before[self.order] >= row[self.order] else row
        if self.payload == "PartialUpdateAvroPayload":
            return _filled(before, row) if older else _filled(row, before)
        return before if older else row

    def _merged(self, stored: Row | None, row: Row) -> Row | None:
        gone = row[self.mark[0]] == self.mark[1]
        if stored is None:
            return None if gone else row
        late, equal = row[self.order] < stored[self.order], row[self.order] == stored[self.order]
        match self.payload:
            case "OverwriteWithLatestAvroPayload" | "AWSDmsAvroPayload":
                return None if gone else row
            case "OverwriteNonDefaultsWithLatestAvroPayload":
                return None if gone else _filled(row, stored)
            case "PartialUpdateAvroPayload":
                return None if gone else _filled(stored, row) if late else _filled(row, stored)
            case "EventTimeAvroPayload" if not self.by_1x:
                return None if gone else stored if late else row
            case "FirstValueAvroPayload" | "MySqlDebeziumAvroPayload" if not self.by_1x:
                return stored if late or equal else None if gone else row
            case "PostgresDebeziumAvroPayload":
                return stored if late else None if gone else _untoasted(row, stored)
        return stored if late else None if gone else row


def _filled(row: Row, other: Row) -> Row:
    return {name: other[name] if value is None else value for name, value in row.items()}


def _untoasted(row: Row, stored: Row) -> Row:
    return {name: stored[name] if value == TOASTED else value for name, value in row.items()}


SCENARIOS = [
    Scenario("OverwriteWithLatestAvroPayload"),
    Scenario("DefaultHoodieRecordPayload"),
    Scenario("EventTimeAvroPayload"),
    Scenario("PartialUpdateAvroPayload"),
    Scenario("OverwriteNonDefaultsWithLatestAvroPayload"),
    Scenario("FirstValueAvroPayload"),
    Scenario("AWSDmsAvroPayload", mark=("Op", "D"), kept="U"),
    Scenario("MySqlDebeziumAvroPayload", "_event_seq", ("_change_operation_type", "d"), "u"),
    Scenario("PostgresDebeziumAvroPayload", "_event_lsn", ("_change_operation_type", "d"), "u"),
]
