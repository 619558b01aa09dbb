"""What the metadata table guarantees about files changes no rows of a read, whatever its statistics are of, and whoever made them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable
from lakehouse_engine.format.metadata_table.keys import column_stats_keys
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.format.metadata_table.statistics import COUNTS, stats_payloads
from lakehouse_engine.index import simple
from lakehouse_engine.index.base import TaggedFile
from lakehouse_engine.index.key_bounds import may_have_keys
from lakehouse_engine.index.lookup import TagTask
from lakehouse_engine.metadata_table.answers import LISTED, Statistics
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.read import indexed
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.guarantees import FromFooters
from lakehouse_engine.read.indexed import FromMetadataTable, _Known
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.read.skipping import without_ruled_out
from lakehouse_engine.read.sources import guarantees_for
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.alter import evolve_schema
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.readers import assert_same_rows

SCHEMA = pa.schema([
    ("id", pa.string()), ("part", pa.string()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()), ("d", pa.float64()),
    ("s", pa.string()), ("c", pa.decimal128(12, 3)), ("w", pa.decimal128(38, 18)), ("day", pa.date32()),
    ("at", pa.timestamp("us", tz="UTC")), ("b", pa.bool_()),
])  # fmt: skip
LATER = {"late": pa.int64(), "late_text": pa.string(), "i": pa.int64(), "f": pa.float64()}
"""Columns that are added, or get another type, once there are files."""
KINDS = [(version, kind) for version in (6, 8, 9) for kind in ("cow", "mor")]
NAN = float("nan")


@pytest.fixture(autouse=True)
def asks_for_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "WORTH_ASKING", 1)


def value(kind: pa.DataType, chance: random.Random, around: int) -> Any:
    """A value of a column: near to others of its file, with some of the awkward ones."""
    if chance.random() < 0.15:
        return None
    number = around + chance.randrange(4)
    if pa.types.is_floating(kind):
        return chance.choice([NAN, float("inf"), -0.0, 0.0, float(number), number / 4]) if chance.random() < 0.3 else float(number)
    if pa.types.is_string(kind):
        return chance.choice([f"v{number:03d}", f"v{number:03d}" * 1200, "", "\ufffd", "\U0001f600", f"é{number}"])
    if pa.types.is_decimal(kind):
        return Decimal(number * 7 - 100).scaleb(-3)
    if pa.types.is_date(kind):
        return date(1500 if around % 7 == 0 else 2000, 1, 1) + timedelta(days=number)
    if pa.types.is_timestamp(kind):
        return datetime(1400 if around % 7 == 0 else 2000, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=number)
    return number % 2 == 0 if pa.types.is_boolean(kind) else number


def rows(schema: pa.Schema, keys: Sequence[int], chance: random.Random, around: int) -> pa.Table:
    columns = {field.name: [value(field.type, chance, around) for _ in keys] for field in schema}
    columns |= {"id": [f"k{key:03d}" for key in keys], "part": [f"p{key % 3}" for key in keys]}
    return pa.table(columns, schema=schema)


def table_of(version: int, kind: str, chance: random.Random) -> HoodieTable:
    """Files of different ranges, some updated and deleted from, some from before columns were added."""
    storage = MemoryStorage()
    properties = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
    }
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["part"], table_type=kind, version=TableVersion(version), properties=properties)
    create_table(storage, spec)
    table, schema = HoodieTable(storage), SCHEMA
    for number in range(3):
        keys = range(number * 12, number * 12 + 12)
        table.bulk_insert(rows(schema, keys, chance, number * 50))
        if number == 0:
            evolve_schema(storage, pa.schema(list(LATER.items())), lock_timeout_ms=60_000)
            schema = pa.schema([(name, kind) for name, kind in ({one.name: one.type for one in SCHEMA} | LATER).items()])
    table.upsert(rows(schema, chance.sample(range(36), 5), chance, 700))
    table.delete(pa.table({"id": ["k003", "k020"], "part": ["p0", "p2"]}))
    assert {"column_stats", "record_index"} <= set(table.config.metadata_partitions)
    return table


def conditions(found: pa.Table, chance: random.Random) -> list[pc.Expression]:
    """Comparisons of each column with some of its values, points of the key, and nulls."""
    made: list[pc.Expression] = [pc.field("id").isin(["k001", "k015", "k999"]), (pc.field("id") == "k030") & (pc.field("l") > 0)]
    for field in found.schema:
        column, values = pc.field(field.name), pc.unique(found[field.name]).drop_null()
        made += [column.is_null(), column.is_valid()]
        if not pa.types.is_boolean(field.type) and len(values):
            one = values[chance.randrange(len(values))]
            made += [column == one, column < one, column >= one, column != one]
        if pa.types.is_floating(field.type):
            made += [pc.is_nan(column), column > pa.scalar(600.0, field.type)]
    return made


def as_spark_reads(table: HoodieTable, condition: pc.Expression) -> pa.Table:
    """The rows that Spark is given for a statement with a condition, filtered by it as Spark does."""
    plan = without_ruled_out(plan_query(table.state, Query(), paths=True, narrowing=lambda schema: condition))
    return read_arrow(replace(plan, wanted=None)).filter(condition)


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_rows_are_the_same_with_and_without_it(version: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"{version} {kind}")
    table = table_of(version, kind, chance)
    everything = table.to_arrow()
    asked: list[int] = []
    real = FromMetadataTable.without_rows

    def counted(self: FromMetadataTable, *given: Any, **more: Any) -> frozenset[str]:
        found = real(self, *given, **more)
        asked.append(len(found))
        return found

    monkeypatch.setattr(FromMetadataTable, "without_rows", counted)
    for condition in conditions(everything, chance):
        expected = everything.filter(condition).sort_by("id")
        assert_same_rows(table.to_arrow(filters=condition).sort_by("id"), expected)
        assert_same_rows(as_spark_reads(table, condition).sort_by("id"), expected)
    assert sum(asked) > 100


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_statements_open_no_footer_of_a_file_that_it_rules_out(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(9, kind, random.Random(3))
    opened: list[int] = []
    real = FromFooters.without_rows

    def counted(self: FromFooters, storage: Any, files: Any, *given: Any, **more: Any) -> frozenset[str]:
        opened.append(len(files))
        return real(self, storage, files, *given, **more)

    monkeypatch.setattr(FromFooters, "without_rows", counted)
    state = table.state
    whole = len(list(plan_query(state, Query()).base_files()))
    as_spark_reads(table, pc.field("l") > 600)
    assert len(opened) == (1 if kind == "cow" else 0), "the base files of merge-on-read tables have smaller numbers"
    assert sum(opened) < whole
    opened.clear()
    plan = without_ruled_out(plan_query(state, Query(), paths=True, narrowing=lambda schema: pc.field("id") == "k015"))
    assert len(plan.files) + len(plan.logged) == 1
    assert sum(opened) <= 1


def test_bounds_of_keys_are_known_of_files_that_were_not_opened() -> None:
    table = table_of(9, "cow", random.Random(5))
    state = table.state
    bases = list(plan_query(state, Query()).base_files())
    known = guarantees_for(state, Trusted(state), opening=True)
    keys = {base.path: read_arrow(replace(plan_query(state, Query()), files=(base,)), columns=["id"])["id"].to_pylist() for base in bases}
    for base, bounds in zip(bases, known.keys(table.storage, bases), strict=True):
        assert bounds == (min(keys[base.path]), max(keys[base.path]))
    found = {base.path for base in may_have_keys(known, table.storage, bases, pa.array(["k013"]))}
    assert {path for path, held in keys.items() if "k013" in held} <= found < set(keys)


def test_an_upsert_looks_for_keys_in_the_files_whose_bounds_hold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    statistics_of_columns = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    properties = {**statistics_of_columns, "hoodie.index.type": "GLOBAL_SIMPLE"}
    create_table(storage, TableSpec("t", SCHEMA, ["id"], partition_by=["part"], properties=properties))
    table, chance = HoodieTable(storage), random.Random(4)
    for number in range(4):
        table.bulk_insert(rows(SCHEMA, range(number * 12, number * 12 + 12), chance, 0))
    opened: list[str] = []
    real = simple.tag_files

    def counted(task: TagTask) -> list[TaggedFile]:
        opened.extend(base.path for base in task.bases)
        return real(task)

    monkeypatch.setattr(simple, "tag_files", counted)
    table.upsert(rows(SCHEMA, [13, 16, 999], chance, 5))
    assert 1 <= len(opened) <= 3, "those of the second commit"
    found = table.to_arrow()["id"].to_pylist()
    assert len(found) == len(set(found)) == 49


def statistics(field: pa.Field, least: Any, greatest: Any, values: int, nulls: int | None) -> Statistics:
    """A record of `column_stats` for the file `f` in the partition `p`."""
    counts = pa.table([pa.array([one], pa.int64()) for one in (values, nulls, 1, 1)], names=COUNTS)
    ends = (pa.array([end], field.type) for end in (least, greatest))
    payloads = stats_payloads(pa.array(["f"]), field.name, *ends, counts, by_value_type=True)
    keys = column_stats_keys(pa.array([field.name]), pa.array(["p"]), pa.array(["f"]))
    records = Records(keys, payloads)
    return Statistics.of(records)


def guarantee(stats: Statistics, field: pa.Field, *, is_ours: bool, by_hudi: bool) -> list[str]:
    files = pa.table([["p"], ["f"], [1]], schema=LISTED)
    (found,) = _Known(stats, files, is_ours, pa.array([by_hudi])).of_column(field).guarantees(field)
    return [str(one) for one in found]


@pytest.mark.parametrize(
    ("kind", "least", "greatest", "nulls", "hudis", "of_our_file"),
    [
        (pa.float64(), 1.0, 2.0, 0, False, False),
        (pa.string(), "a", "b", 0, True, False),
        (pa.string(), "a", "b", 3, False, False),
        (pa.int64(), 1, 2, 0, True, True),
        (pa.int64(), 1, 2, 3, True, True),
        (pa.decimal128(9, 2), Decimal("1.00"), Decimal("2.00"), 0, True, True),
        (pa.int64(), None, None, 9, False, False),
        (pa.string(), None, None, 9, False, False),
        (pa.float64(), None, None, 0, False, False),
    ],
)
def test_statistics_of_hudi_are_believed_where_they_hold_every_value(
    kind: pa.DataType, least: Any, greatest: Any, nulls: int, hudis: bool, of_our_file: bool
) -> None:
    """Hudi joins the bounds of row groups, passes over those without, and takes a row group without statistics for null."""
    field = pa.field("x", kind)
    stats = statistics(field, least, greatest, 9, nulls)
    assert (guarantee(stats, field, is_ours=False, by_hudi=True) != ["true"]) == hudis
    assert (guarantee(stats, field, is_ours=False, by_hudi=False) != ["true"]) == of_our_file
    assert (guarantee(stats, field, is_ours=True, by_hudi=False) != ["true"]) == (least is not None or nulls == 9)


def test_statistics_are_ours_where_no_other_program_wrote_the_table_or_built_an_index() -> None:
    table = table_of(9, "cow", random.Random(1))
    state = TableState.load(table.storage)
    assert indexed._are_ours(state)
    table.create_index("bloom_filters")
    state = TableState.load(table.storage)
    assert [one for one in state.timeline if one.action is Action.INDEXING]
    assert indexed._are_ours(state)
    time = f".hoodie/timeline/{int(state.timeline.instants[-1].requested_time) + 1}.indexing"
    table.storage.create(f"{time}.requested", b"")
    assert indexed._are_ours(TableState.load(table.storage)), "it is a plan only"
    table.storage.create(f"{time}.inflight", b"")
    assert not indexed._are_ours(TableState.load(table.storage))
