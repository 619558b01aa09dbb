"""What a rewrite copies of the file before: the rows are those that encoding all of them would have given, in the eyes of every reader."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import CorruptFileError
from lakehouse_engine.files.base_file import open_base_file
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.index.lookup import stored_filter
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_SEQNO, RECORD_KEY
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.verify.table import verify
from lakehouse_engine.write.tasks import copying
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import RICH, TableBuilder, rich_row
from tests.support.table_model import Row

GROUP = "lakehouse.parquet.row.group.rows"
SMALL = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.float64()), ("n", pa.list_(pa.float32()))])


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "COPIED_FROM", 0)


def row(number: int, ts: int = 1, v: str | None = "v", w: float | None = 0.5, n: list[float] | None = None) -> Row:
    return {"id": number, "ts": ts, "v": v, "w": w, "n": n}


def made(folder: Path, rows: Sequence[Row], schema: pa.Schema = SMALL, group: int = 40, **how: Any) -> TableBuilder:
    how = {"index": "SIMPLE", "options": {GROUP: group}, **how}
    built = TableBuilder.create(folder / "t", schema, **how)
    built.bulk_insert(rows)
    return built


def base_of(built: TableBuilder) -> BaseFile:
    """The base file of a table of one file group."""
    (piece,) = built.table.state.view.latest_slices()
    assert piece.base_file is not None
    return piece.base_file


def groups_of(built: TableBuilder) -> list[int]:
    with open_base_file(built.table.storage, base_of(built).path) as file:
        return [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]


def keys_in_order(built: TableBuilder) -> list[str]:
    with open_base_file(built.table.storage, base_of(built).path) as file:
        found: list[str] = file.read([RECORD_KEY]).column(0).to_pylist()
        return found


def test_columns_that_stay_the_same_are_copied_and_rows_stay_in_their_places(tmp_path: Path, copies: list[frozenset[str]]) -> None:
    built = made(tmp_path, [row(number, w=number / 4) for number in range(100)], ordering="ts")
    before = keys_in_order(built)
    built.upsert([row(number, 2, f"new {number}", number / 4) for number in (3, 39, 85, 81)])
    untouched = set(built.table.to_arrow(meta_columns=True).column_names) - {"_hoodie_file_name"}
    changed = {RECORD_KEY, "_hoodie_partition_path", "id"}
    assert copies == [changed, untouched, changed], "a floating point number is never known to be the same"
    assert keys_in_order(built) == before
    assert groups_of(built) == [40, 40, 20]
    built.check(with_hudi_rs=True)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("payload", ["event_time", "overwrite", "partial"])
def test_random_changes_give_what_the_model_has(seed: int, payload: str, tmp_path: Path, copies: list[frozenset[str]]) -> None:
    chance = random.Random(f"{seed}/{payload}")
    ordering = None if payload == "overwrite" else "ts"
    rows = {number: rich_row(number, day=rich_row(0)["day"]) for number in range(150)}
    built = made(tmp_path, list(rows.values()), RICH, chance.choice([30, 50, 200]), ordering=ordering, payload=payload)
    for step in range(1, 7):
        near = chance.sample(range(max(rows) + 1), chance.randint(1, 40)) if chance.random() < 0.5 else range(10 * step, 10 * step + 9)
        batch = [_changed(chance, rows.get(number, rich_row(number, day=rich_row(0)["day"])), step) for number in near]
        if chance.random() < 0.3:
            batch += [rich_row(max(rows) + 1 + extra, step, day=rich_row(0)["day"]) for extra in range(chance.randint(1, 30))]
        if chance.random() < 0.25:
            built.delete(batch)
        else:
            built.upsert(batch)
        rows |= {row["id"]: row for row in batch}
        built.check_snapshot()
        assert_same_rows(read_with_hudi_rs(built.path), built.table.to_arrow(meta_columns=True))
    assert copies
    assert verify(built.table.state).ok
    numbers = built.table.to_arrow(columns=[COMMIT_SEQNO]).column(0).to_pylist()
    assert len(set(numbers)) == len(numbers)


def _changed(chance: random.Random, before: Row, step: int) -> Row:
    """A row with some of its columns anew, now and then older than what is stored."""
    fresh = rich_row(before["id"], 10 * step, day=before["day"])
    names = chance.sample(RICH.names, chance.randint(0, 6)) if chance.random() < 0.8 else RICH.names
    kept = ("id", "code", "region", "day")
    return {**before, **{name: fresh[name] for name in names if name not in kept}, "ts": chance.choice([100 + step, 100 + step, 50])}


class Seen:
    """A table that counts how often all of its columns are gone through."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.times = table, 0

    @property
    def column_names(self) -> list[str]:
        self.times += 1
        return self.table.column_names  # type: ignore[no-any-return]

    def slice(self, start: int, length: int) -> pa.Table:
        self.times += 1
        return self.table.slice(start, length)

    def column(self, name: str) -> pa.ChunkedArray:
        return self.table.column(name)


def test_columns_are_not_gone_through_for_each_of_them() -> None:
    stored = pa.table({f"c{number}": [1, 2, 3] for number in range(50)})
    given = Seen(stored.take([0, 2]).set_column(7, "c7", pa.array([1, 4])))
    places = np.array([0, 2])
    assert copying.unchanged(stored, given, places) == [f"c{number}" for number in range(50) if number != 7]  # type: ignore[arg-type]
    assert given.times <= 2, "with a thousand columns that took most of a write's time"


def test_values_that_equal_others_or_none_are_written_as_given(tmp_path: Path) -> None:
    built = made(tmp_path, [row(number, w=0.0, n=[0.0]) for number in range(20)])
    built.upsert([row(1, w=-0.0, n=[-0.0]), row(2, w=float("nan"), n=[float("nan")])])
    built.upsert([row(2, w=float("nan"), n=[0.0])])
    found = {one["id"]: one for one in built.table.to_arrow().to_pylist()}
    assert [str(found[1]["w"]), str(found[1]["n"]), str(found[2]["w"]), str(found[2]["n"])] == ["-0.0", "[-0.0]", "nan", "[0.0]"]


def test_a_row_that_loses_or_is_deleted_leaves_the_others(tmp_path: Path, copies: list[frozenset[str]]) -> None:
    schema = pa.schema([*SMALL, ("_hoodie_is_deleted", pa.bool_())])
    rows = [{**row(number, 5), "_hoodie_is_deleted": None} for number in range(100)]
    built = made(tmp_path, rows, schema, ordering="ts")
    built.upsert([{**rows[3], "ts": 4, "v": "late"}, {**rows[50], "ts": 6, "v": "new"}])
    assert [len(columns) for columns in copies] == [len(schema) + 4, 4, len(schema) + 4]
    built.upsert([{**rows[number], "ts": 7, "_hoodie_is_deleted": number % 2 == 0} for number in range(38, 44)])
    built.check(with_hudi_rs=True)
    assert groups_of(built) == [39, 38, 20]


def test_small_row_groups_do_not_become_more_and_more(tmp_path: Path) -> None:
    built = made(tmp_path, [row(number) for number in range(100)])
    for step in range(1, 15):
        built.upsert([row(100 + 3 * step + extra) for extra in range(3)] + [row(step, v=f"v{step}")])
        built.delete([row(50 + step)])
    assert max(groups_of(built)) <= 60
    assert len(groups_of(built)) <= 6
    built.check_snapshot()
    assert_same_rows(read_with_hudi_rs(built.path), built.table.to_arrow(meta_columns=True))


def test_the_keys_of_copied_rows_are_found_whatever_becomes_of_the_filter(tmp_path: Path, copies: list[frozenset[str]]) -> None:
    built = made(tmp_path, [row(number) for number in range(100)], index="BLOOM")
    built.upsert([row(number, v="new") for number in range(98, 160)])
    assert copies, "the filter had no room for so many, and was built anew of all keys"
    footer = read_footer(built.table.storage, base_of(built))
    bloom = stored_filter(footer)
    keys = pa.array(keys_in_order(built))
    assert bloom is not None
    assert bloom.might_contain(keys).all()
    assert (footer.min_key, footer.max_key) == (min(keys.to_pylist()), max(keys.to_pylist()))
    built.upsert([row(number, v="newer") for number in range(0, 160, 7)])
    built.check(with_hudi_rs=True)


def test_a_page_that_fails_its_checksum_is_not_copied(tmp_path: Path) -> None:
    built = made(tmp_path, [row(number, v=f"text {number}") for number in range(100)])
    path = built.path / base_of(built).path
    column = pq.read_metadata(path).row_group(1).column(7)
    assert column.path_in_schema == "v"
    content = bytearray(path.read_bytes())
    content[(column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CorruptFileError, match=f"{path.name}' is damaged: a page of the column 'v' fails its checksum"):
        built.table.upsert(built.arrow([row(1, v="new")]), options=built.options)
    assert [one for one in built.path.rglob("*.parquet") if ".hoodie" not in str(one)] == [path], "nothing is left of the new file"
    assert len(HoodieTable.open(built.table.path).timeline.completed()) == 1


@pytest.mark.parametrize("change", ["codec", "column"])
def test_files_that_store_rows_in_another_way_are_encoded_anew(change: str, tmp_path: Path, copies: list[frozenset[str]]) -> None:
    built = made(tmp_path, [row(number) for number in range(100)])
    batch = built.arrow([row(1, v="new")])
    if change == "codec":
        built.options["hoodie.parquet.compression.codec"] = "SNAPPY"
    else:
        built.options["hoodie.datasource.write.reconcile.schema"] = True
        batch = batch.append_column("more", pa.array([7], pa.int32()))
    built.table.upsert(batch, options=built.options)
    assert not copies
    assert groups_of(built) == [40, 40, 20]
    built.table.upsert(batch, options=built.options)
    assert len(copies) == 3, "of its own file it copies"
    assert_same_rows(read_with_hudi_rs(built.path), built.table.to_arrow(meta_columns=True))
    assert {one["id"]: one["v"] for one in built.table.to_arrow().to_pylist()} == {n: "new" if n == 1 else "v" for n in range(100)}


def test_tables_without_meta_columns_are_copied_from_too(tmp_path: Path, copies: list[frozenset[str]]) -> None:
    built = TableBuilder.create(tmp_path / "t", SMALL, options={GROUP: 40}, index="SIMPLE")
    ConfigStore(built.table.storage).update({"hoodie.populate.meta.fields": "false"})
    table = HoodieTable.open(built.table.path)
    table.bulk_insert(built.arrow([row(number) for number in range(100)]), options=built.options)
    table.upsert(built.arrow([row(45, v="new")]), options=built.options)
    assert len(copies) == 3
    assert {one["id"]: one["v"] for one in table.to_arrow().to_pylist()} == {n: "new" if n == 45 else "v" for n in range(100)}
    table.upsert(built.arrow([row(45, v="newer"), row(99, v="newer")]), options=built.options)
    assert [one["id"] for one in table.to_arrow().to_pylist() if one["v"] == "newer"] == [45, 99]
