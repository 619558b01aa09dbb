"""Writes that are planned in shares: the same rows as by one process, new records in their order, nothing left over."""

from __future__ import annotations

import itertools
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import ChangedSinceReadError, DuplicateKeyError, OptionError
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.write.shares.exchange import Exchange, shares_of
from lakehouse_engine.write.shares.routing import Kind, PlaceId, RoutedShare, _blocks, _Part, _places, _rows, by_place, cut_points

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("p", pa.string()), ("a", pa.string()), ("b", pa.string())])
LARGE, SMALL = {"lakehouse.write.broadcast.max.bytes": 0}, {"lakehouse.write.broadcast.max.bytes": 1 << 40}
SMALL_FILES = {"hoodie.parquet.max.file.size": 8000, "hoodie.parquet.small.file.limit": 6000}
INDEXES = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "staying": {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
}
PAYLOADS = {
    "latest": {},
    "event": {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
    "partial": {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"},
}


def make(folder: Path, kind: str, properties: dict[str, str], name: str = "t") -> HoodieTable:
    lake = Lakehouse(str(folder))
    lake.create_schema("s")
    return lake.create_table(
        f"s.{name}",
        schema=SCHEMA,
        record_key=["id"],
        ordering_fields=["ts"],
        partition_by=["p"],
        table_type=kind,
        properties=properties,
    )


def batch(chance: random.Random, count: int, ids: int) -> pa.Table:
    rows = [
        {
            "id": chance.randrange(ids),
            "ts": chance.randrange(5),
            "p": chance.choice("xyz"),
            "a": chance.choice([None, "a1", "a2"]),
            "b": chance.choice([None, "b1", "b2"]),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def keys(rows: pa.Table) -> pa.Table:
    return rows.select(["id", "p"])


def content(table: HoodieTable) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: (row["id"], row["p"], str(row)))


TABLES = [f"{kind} {index} {payload}" for kind in ("cow", "mor") for index in INDEXES for payload in PAYLOADS]


@pytest.mark.parametrize("made", TABLES)
def test_both_routes_give_the_same_rows_and_counts(tmp_path: Path, made: str) -> None:
    kind, index, payload = made.split()
    chance = random.Random(made)
    properties = {**INDEXES[index], **PAYLOADS[payload]}
    tables = [make(tmp_path / name, kind, properties) for name in ("of-one", "of-shares")]
    for step in range(8):
        rows = batch(chance, chance.choice([1, 40, 150]), 120)
        done = chance.choice(["upsert", "upsert", "delete", "columns", "compact"]) if step else "upsert"
        results = []
        for table, route in zip(tables, (SMALL, LARGE), strict=True):
            options = {**route, **SMALL_FILES}
            if done == "upsert":
                results.append(table.upsert(rows, options=options))
            elif done == "delete":
                results.append(table.delete(keys(rows), options=options))
            elif done == "columns":
                options["hoodie.datasource.write.reconcile.schema"] = True
                results.append(table.upsert(rows.select(["id", "ts", "p", "b"]), options=options))
            elif kind == "mor":
                table.compact()
        counts = [(one.inserts, one.updates, one.deletes, one.duplicates_dropped, one.instant is None) for one in results]
        assert counts[1:] == counts[:-1], (step, done)
        assert content(tables[1]) == content(tables[0]), (step, done)
    assert not list(Path(tables[1].path).glob(".hoodie/.temp/*"))


PLACES = {
    "named": lambda rows: rows,
    "by number alone": lambda rows: rows.select(["_hoodie_commit_seqno"]),
    "misplaced": lambda rows: rows.set_column(4, "_hoodie_file_name", pa.nulls(rows.num_rows, pa.string())),
}


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("index", ["simple", "bucket"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_are_replaced_by_their_numbers_on_both_routes(tmp_path: Path, kind: str, index: str, places: str) -> None:
    chance, results = random.Random(f"{kind} {index} {places}"), []
    steps = [batch(chance, 60, 80) for _ in range(4)]
    for name, way in (("small", SMALL), ("large", LARGE)):
        table = make(tmp_path, kind, {**INDEXES[index], **SMALL_FILES}, name)
        table.upsert(steps[0], options=SMALL)
        table.upsert(steps[1], options=SMALL)
        for turn, rows in enumerate(steps[2:]):
            stored = table.to_arrow(meta_columns=True)
            chosen = stored.filter(np.array([(row + turn) % 3 == 0 for row in stored["id"].to_pylist()]))
            assert chosen.num_rows > 5
            result = table.replace_rows(rows, replaced=PLACES[places](chosen), options=way)
            assert result.route == name.upper()
            if (kind, index) != ("mor", "bucket"):  # there a row that comes in the place of one with its key is an update
                assert (result.deletes, result.inserts) == (chosen.num_rows, rows.num_rows)
            results.append((turn, result.deletes, result.inserts, result.updates, content(table)))
    assert results[:2] == results[2:]
    for way in (SMALL, LARGE):
        before = table.timeline
        with pytest.raises(ChangedSinceReadError, match=rf"{chosen.num_rows} of the {chosen.num_rows} rows.*missing='ignore'"):
            table.replace_rows(steps[0], replaced=PLACES[places](chosen), options=way)
        assert table.timeline == before
        assert table.replace_rows(steps[0].slice(0, 0), replaced=chosen, missing="ignore", options=way).instant is None


def test_the_route_is_told_by_the_result_and_by_the_history(tmp_path: Path) -> None:
    table = make(tmp_path, "cow", {})
    rows = batch(random.Random(0), 10, 1000)
    assert [table.upsert(rows, options=route).route for route in (SMALL, LARGE)] == ["SMALL", "LARGE"]
    assert table.bulk_insert(rows).route is None
    assert [entry.route for entry in table.history()] == [None, "LARGE", "SMALL"]


def test_what_the_keys_weigh_decides(tmp_path: Path) -> None:
    table = make(tmp_path, "cow", {})
    rows = batch(random.Random(0), 1000, 10**6)
    limit = {"lakehouse.write.broadcast.max.bytes": 20_000}
    assert table.upsert(rows.slice(0, 100), options=limit).route == "SMALL"
    assert table.upsert(rows, options=limit).route == "LARGE"
    assert table.upsert(rows.slice(0, 1), delete_keys=rows, options=limit).route == "LARGE"
    with pytest.raises(OptionError, match=r"lakehouse\.write\.broadcast\.max\.bytes"):
        table.upsert(rows, options={"lakehouse.write.broadcast.max.bytes": -1})


def test_new_records_stay_in_the_order_of_the_batch(tmp_path: Path) -> None:
    """Files that hold a range of keys each can be ruled out by their statistics."""
    table = make(tmp_path, "cow", {})
    count = 300_000
    ids = pa.array(np.arange(count))
    rows = pa.table([ids, ids, pa.repeat("x", count), ids.cast(pa.string()), ids.cast(pa.string())], schema=SCHEMA)
    options = {**LARGE, "hoodie.parquet.max.file.size": 1_500_000}
    assert table.upsert(rows, options=options).inserts == count
    ranges = []
    for file in Path(table.path).rglob("*.parquet"):
        found = pq.read_table(file, columns=["id"], partitioning=None).column("id").to_numpy()
        assert (np.diff(found) > 0).all()
        ranges.append((found[0], found[-1]))
    assert len(ranges) > 2
    ordered = sorted(ranges)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ordered))
    assert table.to_arrow(["id"]).num_rows == count


def test_rows_of_one_key_are_refused_where_that_is_asked_for(tmp_path: Path) -> None:
    table = make(tmp_path, "cow", {})
    rows = batch(random.Random(0), 50, 10)
    with pytest.raises(DuplicateKeyError, match=r"in one of \d+ parts of the batch"):
        table.upsert(rows, options={**LARGE, "lakehouse.duplicate.source.keys": "ERROR"})
    assert table.history() == []


def test_tables_without_meta_columns_and_without_keys_are_written_in_shares(tmp_path: Path) -> None:
    rows, found = batch(random.Random(3), 80, 1000), []
    for route in (SMALL, LARGE):
        made = make(tmp_path / str(route), "cow", {})
        ConfigStore(LocalStorage(made.path)).update({"hoodie.populate.meta.fields": "false"})
        bare = HoodieTable.open(made.path)
        bare.upsert(rows.slice(0, 40), options=route)
        assert bare.upsert(rows, options=route).route == ("LARGE" if route is LARGE else "SMALL")
        found.append(content(bare))
    assert found[0] == found[1]
    lake = Lakehouse(str(tmp_path / "keyless"))
    lake.create_schema("s")
    keyless = lake.create_table("s.t", schema=SCHEMA)
    assert keyless.insert(rows, options=LARGE).inserts == keyless.to_arrow().num_rows == 80


def test_cuts_lie_where_about_so_many_records_are_before_them() -> None:
    blocks = {0: 10, 3: 100, 7: 1}
    cuts = cut_points(blocks, [0, 5, 10, 60, 110, 111])
    assert cuts == sorted(cuts)
    assert cuts[0] == 0
    assert cuts[1] == 1 << 15
    assert cuts[2] == 1 << 16
    assert cuts[3] == (3 << 16) + (1 << 15)
    assert cuts[4] == 4 << 16
    assert cuts[5] == 8 << 16


def share_with(path: str, *parts: _Part) -> RoutedShare:
    return RoutedShare(path, _places(parts), {number: _blocks(part.rows) for number, part in enumerate(parts) if part.is_new})


def part(place: PlaceId, kind: Kind, *rows: int, rewrite: bool = False) -> _Part:
    told = _rows(kind, np.array(rows, np.int64), None, None, lambda numbers: numbers)
    assert told is not None
    return _Part(place, told, rewrite, is_new=not isinstance(place, FileGroupId))


def test_what_shares_have_is_put_together_by_place() -> None:
    """One id in two partitions, one bucket too, no bucket and bucket 0, and shares that have nothing, are told apart."""
    one, other, elsewhere = FileGroupId("", "f-0"), FileGroupId("", "f-1"), FileGroupId("p", "f-0")
    shares = [
        RoutedShare(),
        share_with("a", part(other, Kind.UPDATE, 4), part(("", None), Kind.INSERT, 1, 2, 1 << 16), part(("", 0), Kind.INSERT, 9)),
        share_with("b", part(one, Kind.UPDATE, 5, 6), part(elsewhere, Kind.REVIVED, 7), part(other, Kind.UNSEEN, 8, rewrite=True)),
        RoutedShare(),
        share_with("c", part(("p", 0), Kind.INSERT, 10), part(other, Kind.UPDATE, 11, 12), part(("", None), Kind.INSERT, 3, 2 << 16)),
    ]
    found = {routed.place: routed for routed in by_place(shares)}
    where = {place: list(zip(routed.shares.tolist(), routed.batches.tolist(), strict=True)) for place, routed in found.items()}
    assert where == {
        one: [(2, 0)],
        other: [(1, 0), (2, 2), (4, 1)],
        elsewhere: [(2, 1)],
        ("", None): [(1, 1), (4, 2)],
        ("", 0): [(1, 2)],
        ("p", 0): [(4, 0)],
    }
    assert (found[other].counts[Kind.UPDATE], found[other].counts[Kind.UNSEEN], sum(found[other].counts)) == (3, 1, 4)
    assert {place: routed.rewrite for place, routed in found.items()} == {place: place == other for place in found}
    assert found["", None].blocks == {0: 3, 1: 1, 2: 1}
    assert found["", None].counts[Kind.INSERT] == 5
    assert found[one].blocks == {}


def test_shares_without_anything_have_no_place() -> None:
    assert by_place([RoutedShare(), RoutedShare()]) == []


def test_one_place_of_many_is_sent_alone() -> None:
    groups = [FileGroupId("p", f"f-{number:05d}") for number in range(5_000)]
    shares = [share_with("a", *(part(group, Kind.UPDATE, 1) for group in groups)) for _ in range(3)]
    told = by_place(shares)
    assert {routed.place for routed in told} == set(groups)
    assert all((routed.shares.tolist(), len(set(routed.batches.tolist()))) == ([0, 1, 2], 1) for routed in told)
    assert len(pickle.dumps(told[7])) < 2_000


def test_a_part_of_a_split_file_is_read_alone_and_in_order(tmp_path: Path) -> None:
    exchange = Exchange(LocalStorage(str(tmp_path)), "x")
    (tmp_path / "x").mkdir()
    table = pa.table({"n": [5, 1, 4, 2, 3]})
    file = exchange.split("n", table, np.array([2, 0, 2, 0, 2]), 4)
    assert file.rows == (2, 0, 3, 0)
    parts = [exchange.read_part(file, part) for part in range(4)]
    assert [None if part is None else part.column("n").to_pylist() for part in parts] == [[1, 2], None, [5, 4, 3], None]


def test_tables_that_are_dealt_one_after_the_other_share_a_file_while_their_columns_are_the_same(tmp_path: Path) -> None:
    exchange = Exchange(LocalStorage(str(tmp_path)), "x")
    (tmp_path / "x").mkdir()
    other = pa.table({"text": ["a", "b"]})
    numbers = [pa.table({"n": pa.array(range(count), pa.int64())}) for count in (3, 0, 5, 2)]
    given = [*numbers[:3], other, numbers[3]]
    files = exchange.split_each("n", ((table, np.arange(table.num_rows, dtype=np.int64) % 3) for table in given), 3)
    assert [file.path == files[0].path for file in files] == [True, True, True, False, False]
    assert [file.rows for file in files] == [(1, 1, 1), (0, 0, 0), (2, 2, 1), (1, 1, 0), (1, 1, 0)]
    sent = pickle.loads(pickle.dumps(exchange))
    for table, file in zip(given, files, strict=True):
        for part in (2, 0, 1):
            found = sent.read_part(file, part)
            assert (0 if found is None else found.num_rows) == file.rows[part]
            if found is not None:
                assert found.equals(table.take(pa.array(range(part, table.num_rows, 3))))


def test_parts_of_more_files_than_are_kept_open_are_read_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[pa.NativeFile] = []
    open_file = pa.ipc.open_file

    def counted(source: pa.NativeFile) -> pa.ipc.RecordBatchFileReader:
        opened.append(source)
        return open_file(source)

    exchange = Exchange(LocalStorage(str(tmp_path)), "x")
    (tmp_path / "x").mkdir()
    tables = [pa.table({"n": [number, -number]}) for number in range(100)]
    files = [exchange.split("n", table, np.array([0, 1]), 2) for table in tables]
    monkeypatch.setattr(pa.ipc, "open_file", counted)
    assert [table["n"].to_pylist() for file in files if (table := exchange.read_part(file, 1)) is not None] == [[-n] for n in range(100)]
    assert len(opened) == 100
    for number in (99, 98, 99):
        assert exchange.read_part(files[number], 0) == tables[number].slice(0, 1)
    assert len(opened) == 100
    assert exchange.read_part(files[0], 0) == tables[0].slice(0, 1)
    assert len(opened) == 101


def test_keys_that_differ_in_their_end_only_are_spread_over_all_shares() -> None:
    for texts in (pa.array([f"key-{number:016d}" for number in range(40_000)]), pa.array([f"{number}" for number in range(40_000)])):
        counts = np.bincount(shares_of(texts, 16), minlength=16)
        assert counts.min() > 0.8 * counts.mean()
        assert counts.max() < 1.2 * counts.mean()
