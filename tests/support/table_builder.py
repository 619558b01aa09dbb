"""A table of ours and the model of it, changed together by every operation, and compared in every way a table is read."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.storage.locations import storage_for
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.readers import META_COLUMNS, assert_same_rows, read_with_hudi_rs
from tests.support.table_model import COMMIT_TIME, Row, TableModel
from tests.support.versions import version_of_new_tables

RICH = pa.schema(
    [
        ("id", pa.int64()),
        ("code", pa.string()),
        ("region", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("real", pa.float32()),
        ("wide", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("huge", pa.decimal128(38, 10)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("born", pa.date32()),
        ("raw", pa.binary()),
        ("name", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("parts", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))),
        ("attrs", pa.map_(pa.string(), pa.int64())),
        ("address", pa.struct([("street", pa.string()), ("geo", pa.struct([("lat", pa.float64())])), ("zips", pa.list_(pa.int32()))])),
    ]
)
"""A column of every kind of type that a table can have."""

_FLAGS = {"overwrite": "OverwriteWithLatestAvroPayload", "event_time": "DefaultHoodieRecordPayload", "partial": "PartialUpdateAvroPayload"}


def rich_row(number: int, seed: int = 0, **fixed: Any) -> Row:
    """A row of `RICH`; every column but the first five is null now and then. Equal arguments give equal rows."""
    chance = random.Random(f"{number}/{seed}")

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    day = dt.date(2026, 1, 1) + dt.timedelta(days=number % 2)
    row = {
        "id": number,
        "code": f"c{number}",
        "region": ("north", "south", "west")[number % 3],
        "day": day,
        "ts": 100 + seed,
        "flag": maybe(chance.random() < 0.5),
        "small": maybe(chance.randint(-(2**31), 2**31 - 1)),
        "real": maybe(chance.randint(-64, 64) / 4),
        "wide": maybe(chance.uniform(-1e9, 1e9)),
        "price": maybe(Decimal(chance.randint(-(10**9), 10**9)).scaleb(-2)),
        "huge": maybe(Decimal(chance.randint(-(10**15), 10**15)).scaleb(-10)),
        "at": maybe(dt.datetime(1969, 7, 20, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=chance.randint(0, 10**15))),
        "born": maybe(dt.date(1900, 1, 1) + dt.timedelta(days=chance.randint(0, 60000))),
        "raw": maybe(chance.randbytes(chance.randint(0, 5))),
        "name": maybe(chance.choice(["", "Zoë", "名前", "🙂", "plain"])),
        "tags": maybe([chance.choice(["x", "y", None]) for _ in range(chance.randint(0, 3))]),
        "parts": maybe([{"a": maybe(chance.randint(0, 9)), "b": maybe("b")} for _ in range(chance.randint(0, 2))]),
        "attrs": maybe([(f"k{index}", maybe(chance.randint(0, 9))) for index in range(chance.randint(0, 3))]),
        "address": maybe({"street": maybe("Main"), "geo": maybe({"lat": chance.random()}), "zips": maybe([1, 2])}),
    }
    return {**row, **fixed}


class TableBuilder:
    """Operations take rows as dicts. Each is written to the table, then made on the model with the instant that it got."""

    def __init__(self, table: HoodieTable, model: TableModel, schema: pa.Schema, options: Mapping[str, Any]) -> None:
        self.table, self.model, self.schema, self.options = table, model, schema, dict(options)

    @classmethod
    def create(
        cls,
        path: Path,
        schema: pa.Schema = RICH,
        *,
        record_key: Sequence[str] = ("id",),
        partition_by: Sequence[str] = (),
        ordering: str | None = None,
        hive_style: bool = True,
        index: str = "GLOBAL_SIMPLE",
        table_type: str = "cow",
        payload: str | None = None,
        properties: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> TableBuilder:
        payload = payload or ("event_time" if ordering else "overwrite")
        spec = TableSpec(
            name=path.name,
            schema=schema,
            record_key=record_key,
            ordering_fields=[ordering] if ordering else [],
            partition_by=partition_by,
            table_type=table_type,
            hive_style=hive_style,
            properties={"hoodie.index.type": index, "hoodie.datasource.write.payload.class": _FLAGS[payload], **(properties or {})},
            version=version_of_new_tables(),
        )
        create_table(storage_for(str(path)), spec)
        model = TableModel(record_key, partition_by, ordering, index.startswith("GLOBAL"), payload)
        return cls(HoodieTable.open(str(path)), model, schema, options or {})

    @property
    def path(self) -> Path:
        return Path(self.table.path)

    def arrow(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> pa.Table:
        schema = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema=schema)

    # operations

    def bulk_insert(self, rows: Sequence[Row]) -> WriteResult:
        result = self.table.bulk_insert(self.arrow(rows), options=self.options)
        return self._after(result, lambda instant: self.model.insert(rows, instant))

    def insert(self, rows: Sequence[Row]) -> WriteResult:
        result = self.table.insert(self.arrow(rows), options=self.options)
        return self._after(result, lambda instant: self.model.insert(rows, instant))

    def upsert(self, rows: Sequence[Row], columns: Sequence[str] | None = None) -> WriteResult:
        result = self.table.upsert(self.arrow(rows), merge_update_columns=columns, options=self.options)
        return self._after(result, lambda instant: self.model.upsert(rows, instant, columns))

    def delete(self, rows: Sequence[Row]) -> WriteResult:
        """By the key of these rows, with the partition where that is part of a row's identity."""
        names = list(self.model.key_fields)
        if not self.model.is_global:
            names += [name for name in self.model.partition_fields if name not in names]
        result = self.table.delete(self.arrow(rows, names), options=self.options)
        return self._after(result, lambda instant: self.model.delete(rows, instant))

    def insert_overwrite(self, rows: Sequence[Row]) -> WriteResult:
        result = self.table.insert_overwrite(self.arrow(rows), options=self.options)
        return self._after(result, lambda instant: self.model.insert_overwrite(rows, instant))

    def insert_overwrite_table(self, rows: Sequence[Row]) -> WriteResult:
        result = self.table.insert_overwrite_table(self.arrow(rows), options=self.options)
        return self._after(result, lambda instant: self.model.insert_overwrite_table(rows, instant))

    def delete_partitions(self, partitions: Sequence[tuple[Any, ...]]) -> WriteResult:
        named = [dict(zip(self.model.partition_fields, values, strict=True)) for values in partitions]
        result = self.table.delete_partitions(named, options=self.options)
        return self._after(result, lambda instant: self.model.delete_partitions(partitions, instant))

    def _after(self, result: WriteResult, change: Callable[[str], None]) -> WriteResult:
        """A write without a commit must have had nothing to do."""
        if result.instant is not None:
            change(result.instant)
            return result
        before = self.model.snapshot()
        change("none")
        del self.model.snapshots["none"]
        assert self.model.snapshot() == before, "there was something to do, but nothing was committed"
        return result

    # comparisons

    def expected(self, rows: Sequence[Row]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), schema=pa.schema([pa.field(COMMIT_TIME, pa.string()), *self.schema]))

    def check_snapshot(self) -> pa.Table:
        """The table's snapshot is the model's; returned with meta columns."""
        ours = self.table.to_arrow(meta_columns=True)
        assert_same_rows(_without_meta(ours), self.expected(self.model.snapshot()))
        return ours

    def check(self, *, with_hudi_rs: bool = False, every_range: bool = True) -> None:
        """Snapshot, time travel to every instant and incremental ranges equal the model's, and hudi-rs' with its meta columns.

        Ranges are those between any two instants, or else each single commit and all of them.
        """
        self._compare(self.model.snapshot(), with_hudi_rs, {}, {})
        for instant in self.model.snapshots:
            self._compare(self.model.snapshot(instant), with_hudi_rs, {"as_of": instant}, {"as_of": instant})
        for begin, end in self.model.ranges(every=every_range):
            bounds = {"begin": begin, "end": end}
            self._compare(self.model.incremental(begin, end), with_hudi_rs, {"query": "incremental", **bounds}, bounds)

    def _compare(self, rows: Sequence[Row], with_hudi_rs: bool, query: dict[str, str], rs_query: dict[str, str]) -> None:
        ours = self.table.to_arrow(meta_columns=True, **query)  # type: ignore[arg-type]
        assert_same_rows(_without_meta(ours), self.expected(rows))
        if with_hudi_rs:
            assert_same_rows(read_with_hudi_rs(self.path, **rs_query), ours)


def _without_meta(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in META_COLUMNS if name != COMMIT_TIME])
