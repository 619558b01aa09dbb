"""Writes to tables with the BUCKET index: every row in the group of its bucket, and nothing looked up that need not be."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import OptionError
from lakehouse_engine.format.file_names import bucket_of
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.index.registry import keeps_index, load_index
from lakehouse_engine.model.keys import COMMIT_TIME, FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.table import HoodieTable
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder

SCHEMA = pa.schema(
    [("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("_hoodie_is_deleted", pa.bool_())]
)
_META = [name for name in META_COLUMNS if name != COMMIT_TIME]
KINDS = [("cow", None), ("cow", "ts"), ("mor", None), ("mor", "ts")]


def row(number: int, ts: int = 1, name: str = "n", *, deleted: bool = False) -> dict[str, Any]:
    return {"id": f"ключ-{number}", "region": f"r{number % 2}", "ts": ts, "name": name, "_hoodie_is_deleted": deleted}


def make(path: Path, table_type: str = "mor", ordering: str | None = None, buckets: int = 3, **properties: str) -> TableBuilder:
    return TableBuilder.create(
        path,
        SCHEMA,
        partition_by=["region"],
        ordering=ordering,
        index="BUCKET",
        table_type=table_type,
        properties={"hoodie.bucket.index.num.buckets": str(buckets), "hoodie.compact.inline": "false", **properties},
    )


def assert_in_buckets(built: TableBuilder) -> None:
    """One live group a bucket, and every row in the one of its key."""
    state = HoodieTable.open(str(built.path)).state
    index = load_index(state, WriteOptions.read({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}))
    assert isinstance(index, BucketIndex)
    groups = [(piece.partition_path, bucket_of(piece.file_id)) for piece in state.view.latest_slices()]
    assert len(groups) == len(set(groups))
    rows = built.table.to_arrow(meta_columns=True)
    stored = [bucket_of(name.split("_")[0]) for name in rows.column(FILE_NAME).to_pylist()]
    assert index.layout.buckets(rows.column(RECORD_KEY).cast(pa.string()).combine_chunks()).tolist() == stored
    assert set(zip(rows.column(PARTITION_PATH).to_pylist(), stored, strict=True)) <= set(groups)


def check(built: TableBuilder, *, with_hudi_rs: bool = False) -> None:
    """As `TableBuilder.check`. Where rows are logged unseen, incremental queries also show those that came too late to count."""
    if built.model.ordering is None or built.table.config.table_type.value == "COPY_ON_WRITE":
        built.check(with_hudi_rs=with_hudi_rs, every_range=False)
        return
    for instant in [None, *built.model.snapshots]:
        ours = built.table.to_arrow(meta_columns=True, as_of=instant)
        assert_same_rows(ours.drop_columns(_META), built.expected(built.model.snapshot(instant) if instant else built.model.snapshot()))
        if with_hudi_rs:
            assert_same_rows(read_with_hudi_rs(built.path, **({"as_of": instant} if instant else {})), ours)
    for begin, end in built.model.ranges(every=False):
        changed = built.table.to_arrow(query="incremental", begin=begin, end=end, meta_columns=True).drop_columns(_META).to_pylist()
        assert all(one in changed for one in built.expected(built.model.incremental(begin, end)).to_pylist())


def step(built: TableBuilder, chance: random.Random, serial: int, known: int) -> int:
    """One random operation; the number of keys that were ever used."""
    some = chance.sample(range(known), chance.randint(1, min(known, 12)))
    fresh = list(range(known, known + chance.randint(0, 4)))
    kind = chance.choice(["upsert"] * 4 + ["insert", "bulk_insert", "delete", "marked", "compact", "insert_overwrite"])
    if kind in ("insert", "bulk_insert"):
        rows = [row(number, serial) for number in range(known, known + 3)]
        (built.insert if kind == "insert" else built.bulk_insert)(rows)
        return known + 3
    if kind == "upsert":
        built.upsert([row(number, chance.randint(1, serial + 3), f"s{serial}") for number in [*some, *fresh]])
        return known + len(fresh)
    if kind == "delete":
        built.delete([row(number) for number in some])
    elif kind == "marked":
        built.upsert([row(number, chance.randint(1, serial + 3), f"s{serial}", deleted=chance.random() < 0.5) for number in some])
    elif kind == "insert_overwrite":
        built.insert_overwrite([row(number, serial) for number in some])
    elif built.table.config.table_type.value == "MERGE_ON_READ":
        result = built.table.compact()
        if result.instant is not None:
            built.model.compact(result.instant)
    return known


@pytest.mark.parametrize(("table_type", "ordering"), KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_random_writes_give_what_a_dictionary_has(table_type: str, ordering: str | None, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{table_type}/{ordering}/{seed}")
    built = make(tmp_path / "t", table_type, ordering)
    built.bulk_insert([row(number) for number in range(10)])
    known = 10
    for serial in range(2, 12):
        known = step(built, chance, serial, known)
        built.check_snapshot()
        assert_in_buckets(built)
    # Without an ordering field hudi-rs merges no logs.
    check(built, with_hudi_rs=ordering is not None or table_type == "cow")


@pytest.mark.parametrize("ordering", [None, "ts"])
def test_updates_and_deletes_read_no_data_file(ordering: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make(tmp_path / "t", "mor", ordering)
    built.bulk_insert([row(number) for number in range(40)])

    def refuse(*arguments: Any, **more: Any) -> Any:
        raise AssertionError("a data file was read")

    for name in (
        "lakehouse_engine.index.lookup.iter_base_file",
        "lakehouse_engine.index.lookup.read_footer",
        "lakehouse_engine.write.locate.stored_values.iter_base_file",
        "lakehouse_engine.files.slice_reader.scan_logs",
    ):
        monkeypatch.setattr(name, refuse)
    upserted = built.upsert([row(number, 2, "new") for number in (1, 2, 3, 50, 51)])
    assert upserted.log_files > 0
    assert upserted.files_updated == 0 or upserted.files_created == 0
    assert built.insert([row(60, 2)]).instant is not None
    assert built.delete([row(number) for number in (4, 5, 999)]).log_files > 0
    monkeypatch.undo()
    check(built)


def test_a_record_comes_back_after_its_deletion_with_an_older_value(tmp_path: Path) -> None:
    built = make(tmp_path / "t", "mor", "ts")
    built.bulk_insert([row(number, 10) for number in range(9)])
    built.delete([row(1), row(2)])
    built.upsert([row(1, 5, "back"), row(2, 15, "back"), row(3, 5, "older"), row(4, 5, deleted=True), row(5, 15, deleted=True)])
    check(built, with_hudi_rs=True)


def test_partial_updates_are_made_of_the_stored_row(tmp_path: Path) -> None:
    built = make(tmp_path / "t")
    built.bulk_insert([row(number) for number in range(9)])
    built.upsert([row(1, 2, "first"), row(20, 2, "fresh")])
    built.upsert([row(1, 9, "second"), row(2, 9, "second"), row(20, 9, "second"), row(30, 9, "new")], ["name"])
    built.check()


def test_upsert_with_keys_to_delete(tmp_path: Path) -> None:
    for ordering in (None, "ts"):
        built = make(tmp_path / f"t{ordering}", "mor", ordering)
        built.bulk_insert([row(number, 10) for number in range(9)])
        keys = built.arrow([row(3, 20), row(4, 5), row(77, 20)], ["id", "region", "ts"])
        built.table.upsert(built.arrow([row(1, 11, "up")]), delete_keys=keys)
        names = {one["id"]: one["name"] for one in built.table.to_arrow().to_pylist()}
        gone = {row(3)["id"]} if ordering else {row(3)["id"], row(4)["id"]}
        assert set(names) == {row(number)["id"] for number in range(9)} - gone
        assert names[row(1)["id"]] == "up"


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("payload", "ts", "as_given"), [("PartialUpdateAvroPayload", 2, True), ("DefaultHoodieRecordPayload", -1, False)]
)
def test_keys_are_deleted_of_a_bucket_that_is_written_anew(payload: str, ts: int, as_given: bool, kind: str, tmp_path: Path) -> None:
    """A row that no log says rightly makes a new base file, of one bucket; keys of another have their deletion logged."""
    named = {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"}
    built = make(tmp_path / "t", kind, "ts", buckets=2, **named)
    # Without an ordering value, which readers compare in other ways than with those below zero.
    built.table.upsert(pa.Table.from_pylist([{**row(number), "ts": None if number == 0 else 1} for number in range(8)], schema=SCHEMA))
    gone = built.arrow([row(2), row(4), row(5), row(6)], ["id", "region"])
    result = built.table.upsert(built.arrow([row(0, ts, "new")]), delete_keys=gone, as_given=as_given)
    assert result.deletes == 4
    left = {one["id"]: one["name"] for one in built.table.to_arrow().to_pylist()}
    assert left == {row(number)["id"]: "new" if number == 0 else "n" for number in (0, 1, 3, 7)}


def test_another_number_of_buckets_or_index_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    built = make(tmp_path / "t", "cow")
    built.bulk_insert([row(number) for number in range(9)])
    before = built.table.timeline
    for options, reason in (
        ({"hoodie.bucket.index.num.buckets": "4"}, "fixed for the life of a table"),
        ({"hoodie.index.type": "SIMPLE"}, "created with BUCKET"),
    ):
        with pytest.raises(OptionError, match=reason):
            built.table.upsert(built.arrow([row(1)]), options=options)
    other = TableBuilder.create(tmp_path / "other", SCHEMA, partition_by=["region"])
    with pytest.raises(OptionError, match="created with GLOBAL_SIMPLE"):
        other.table.upsert(other.arrow([row(1)]), options={"hoodie.index.type": "BUCKET"})
    assert built.table.timeline == before


def test_a_table_without_key_fields_cannot_have_buckets(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="needs a table with record key fields"):
        TableBuilder.create(tmp_path / "t", SCHEMA, record_key=(), index="BUCKET")


def test_the_default_number_of_buckets_is_stored(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", SCHEMA, index="BUCKET")
    assert built.table.config.properties["lakehouse.default.hoodie.bucket.index.num.buckets"] == "256"


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_index_of_one_partition_is_refused_where_a_key_is_unique_in_the_whole_table(tmp_path: Path, kind: str) -> None:
    built = TableBuilder.create(tmp_path / "t", SCHEMA, partition_by=["region"], table_type=kind)
    built.upsert([row(1)])
    narrow, before = {"hoodie.index.type": "BLOOM"}, built.table.timeline
    opened = HoodieTable.open(built.table.path, options=narrow)
    moved = built.arrow([{**row(1), "region": "elsewhere"}])
    for write in (lambda: built.table.upsert(moved, options=narrow), lambda: opened.upsert(moved), lambda: opened.insert(moved)):
        with pytest.raises(OptionError, match=r"hoodie\.index\.type=BLOOM looks.*created with GLOBAL_SIMPLE.*\[table=t\]"):
            write()
    assert built.table.timeline == before
    for name, fits in (("AUTO", True), ("GLOBAL_BLOOM", True), ("SIMPLE", False)):
        assert keeps_index(built.table.config, WriteOptions.read({"hoodie.index.type": name})) is fits
    built.table.upsert(moved, options={"hoodie.index.type": "GLOBAL_BLOOM"})
    assert built.table.to_arrow().num_rows == 1


def test_any_index_may_be_asked_for_where_a_key_can_be_in_one_place_only(tmp_path: Path) -> None:
    whole = TableBuilder.create(tmp_path / "whole", SCHEMA)
    parted = TableBuilder.create(tmp_path / "parted", SCHEMA, partition_by=["region"], index="SIMPLE")
    for built, index in ((whole, "BLOOM"), (parted, "GLOBAL_SIMPLE"), (parted, "BLOOM")):
        built.upsert([row(1)])
        built.table.upsert(built.arrow([row(1)]), options={"hoodie.index.type": index})
        assert built.table.to_arrow().num_rows == 1
