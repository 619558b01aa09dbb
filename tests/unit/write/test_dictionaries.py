"""Text that repeats itself stays a dictionary from file to file, and nobody can tell by the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.files.base_file import RowGroups
from lakehouse_engine.format.parquet_chunks import ChunkedFile
from lakehouse_engine.format.parquet_seal import read_with_tail
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.write.tasks import base_files, copying, file_writer
from lakehouse_engine.write.tasks.dictionaries import alike, values_at, without_unused
from lakehouse_engine.write.tasks.file_writer import base_form
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder
from tests.support.table_model import Row

TEXTS = pa.schema([("id", pa.int64()), ("ts", pa.string()), ("state", pa.string()), ("note", pa.string())])


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "COPIED_FROM", 0)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The user columns that rewrites read as dictionaries."""
    seen: list[str] = []
    find = RowGroups.with_dictionaries

    def seeing(self: RowGroups, names: Any) -> RowGroups:
        found = find(self, names)
        seen.extend(field.name for field in found.wanted if pa.types.is_dictionary(field.type) and field.name in TEXTS.names)
        return found

    monkeypatch.setattr(RowGroups, "with_dictionaries", seeing)
    return seen


def row(number: int, ts: str = "a", state: str | None = None, note: str | None = None) -> Row:
    return {"id": number, "ts": ts, "state": state or f"state {number % 3}", "note": note or f"note {number}"}


def made(folder: Path, table_type: str = "cow", rows: int = 300, **how: Any) -> TableBuilder:
    kept = {"lakehouse.parquet.row.group.rows": "100"}  # for compactions, too
    built = TableBuilder.create(folder / "t", TEXTS, table_type=table_type, index="SIMPLE", properties=kept, **how)
    built.bulk_insert([row(number) for number in range(rows)])
    return built


def base_of(built: TableBuilder) -> BaseFile:
    (piece,) = built.table.state.view.latest_slices()
    assert piece.base_file is not None
    return piece.base_file


def dictionary(built: TableBuilder, column: str, group: int = 0) -> list[str | None] | None:
    """What the file's dictionary of a column has; None where the column is not stored as one."""
    path = built.path / base_of(built).path
    pages = pq.read_metadata(path).row_group(group)
    chunk = next(pages.column(number) for number in range(pages.num_columns) if pages.column(number).path_in_schema == column)
    if not chunk.has_dictionary_page:
        return None
    stored = pq.ParquetFile(path, read_dictionary=[column]).read_row_group(group, columns=[column]).column(0)
    return sorted(str(value) for value in stored.chunk(0).dictionary)


def rewritten(built: TableBuilder, rows: list[Row]) -> str:
    """Upsert rows into the base file; the commit that has them."""
    result = built.upsert(rows)
    if any(piece.log_files for piece in built.table.state.view.latest_slices()):
        built.table.compact()
    assert result.instant is not None
    return result.instant


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_values_that_were_replaced_are_not_in_the_file_any_more(table_type: str, tmp_path: Path, read: list[str]) -> None:
    built = made(tmp_path, table_type, ordering="ts")
    rewritten(built, [row(1, "b", "secret"), row(2, "b", "new")])
    assert dictionary(built, "state") == ["new", "secret", "state 0", "state 1", "state 2"]
    rewritten(built, [row(1, "c", "redacted")])
    assert set(read) >= {"ts", "state"}
    assert dictionary(built, "state") == ["new", "redacted", "state 0", "state 1", "state 2"]
    assert dictionary(built, "ts") == ["a", "b", "c"]
    assert len(dictionary(built, "_hoodie_commit_time") or []) == 3
    instant = rewritten(built, [row(number, "d", "one") for number in range(300)])
    assert dictionary(built, "state") == ["one"]
    assert dictionary(built, "_hoodie_commit_time") == [instant]
    assert_same_rows(read_with_hudi_rs(built.path), built.check_snapshot())


def test_texts_that_do_not_repeat_any_more_become_plain(tmp_path: Path, read: list[str]) -> None:
    built = made(tmp_path)
    built.upsert([row(number, state=f"state of its own {number}") for number in range(80)])
    assert "state" in read
    read.clear()
    assert dictionary(built, "state") is None
    built.upsert([row(1, state="x"), row(250, state="y")])
    assert "state" not in read, "one row group has it as text"
    built.check(with_hudi_rs=True)


def is_made_of_two(table_type: str, payload: str) -> bool:
    """Whether a compaction takes values of either row, as text."""
    return table_type == "mor" and payload == "partial"


@pytest.mark.parametrize("payload", ["event_time", "partial"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_text_orders_rows_and_fills_them(payload: str, table_type: str, tmp_path: Path, read: list[str]) -> None:
    """Late rows lose by a text that is read as a dictionary, nulls are filled from one, and rows go beside rows that change."""
    built = made(tmp_path, table_type, ordering="ts", payload=payload)
    built.upsert([row(1, "b", "new"), row(150, "b", "new")])
    batch = [row(1, "aa", "late"), {**row(150, "c"), "state": None}, {**row(4, "c"), "note": None, "state": "x"}]
    built.upsert([*batch, *(row(number, "c", "y") for number in range(203, 210))])
    built.delete([row(5), row(205)])
    if table_type == "mor":
        built.table.compact()
    built.upsert([row(7, "d", "z")])
    built.check_snapshot()
    if is_made_of_two(table_type, payload):  # hudi-rs does not merge those
        built.table.compact()
    else:
        assert_same_rows(read_with_hudi_rs(built.path), built.table.to_arrow(meta_columns=True))
    built.check_snapshot()
    assert ("ts" in read) == (not is_made_of_two(table_type, payload))


def test_bounds_are_those_of_the_rows(tmp_path: Path) -> None:
    built = made(tmp_path)
    built.upsert([row(0, "zz"), row(1, "0")])
    built.upsert([row(0, "b"), row(1, "b")])
    group = pq.read_metadata(built.path / base_of(built).path).row_group(0)
    bounds = {group.column(number).path_in_schema: group.column(number).statistics for number in range(group.num_columns)}
    assert (bounds["ts"].min, bounds["ts"].max, bounds["ts"].null_count) == ("a", "b", 0)


def test_pages_of_wide_values_stay_pages(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", TEXTS, index="SIMPLE")
    built.bulk_insert([row(number, note=f"{number:05d}" * 600) for number in range(4000)])
    with built.table.storage.open_input(base_of(built).path) as file:
        metadata, tail = read_with_tail(file)
    stored = ChunkedFile.of(tail, metadata)
    assert stored is not None
    (note,) = [one for one in stored.groups[0].chunks if one.column == "note"]
    assert len(note.lengths) // 2 >= 4, "three kilobytes each: a thousand are more than a page"


def test_pages_of_a_row_group_that_is_wider_than_the_first_stay_pages(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", TEXTS, index="SIMPLE", options={"lakehouse.parquet.row.group.rows": 4000})
    built.bulk_insert([row(number, note="x" if number < 4000 else f"{number:05d}" * 600) for number in range(8000)])
    with built.table.storage.open_input(base_of(built).path) as file:
        metadata, tail = read_with_tail(file)
    stored = ChunkedFile.of(tail, metadata)
    assert stored is not None
    assert [len(one.lengths) // 2 >= 4 for group in stored.groups for one in group.chunks if one.column == "note"] == [False, True]


def test_texts_that_become_different_by_and_by_end_as_text(tmp_path: Path, read: list[str]) -> None:
    """Few at once, of which nobody knows whether they repeat themselves."""
    built = made(tmp_path, rows=100)
    for step in range(5):
        built.upsert([row(number, state=f"state of its own {number}") for number in range(20 * step, 20 * step + 20)])
    assert dictionary(built, "state") is None
    read.clear()
    built.upsert([row(1, state="x")])
    assert "state" not in read
    built.check_snapshot()


def test_large_dictionaries_end_as_text(tmp_path: Path, read: list[str]) -> None:
    built = TableBuilder.create(tmp_path / "t", TEXTS, index="SIMPLE")
    built.bulk_insert([row(number) for number in range(3000)])
    for step in range(3):
        built.upsert([row(number, state=f"{number % 300 + 300 * step:04d}" * 500) for number in range(1000 * step, 1000 * step + 1000)])
    assert "state" in read
    read.clear()
    built.upsert([row(1, state="x")])
    assert "state" not in read, "900 values of two kilobytes, more than a page of them"
    built.check_snapshot()
    assert_same_rows(read_with_hudi_rs(built.path), built.table.to_arrow(meta_columns=True))


@pytest.mark.parametrize("payload", ["overwrite", "partial"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_row_groups_that_become_large_are_cut(
    payload: str, table_type: str, tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the bytes that texts have, and not those of their dictionary: in one piece Arrow has room for 2 GB of them."""
    for module in (base_files, file_writer):
        monkeypatch.setattr(module, "ROW_GROUP_BYTES", 60_000)
    monkeypatch.setattr(base_files, "_LARGEST", 200_000)
    ordering = "ts" if payload == "partial" else None
    built = made(tmp_path, table_type, rows=100, ordering=ordering, payload=payload)
    for step in range(1, 5):
        rewritten(built, [row(number, "b", "wide" * 500) for number in range(25 * step - 25, 25 * step)])
        built.check_snapshot()
    groups = pq.read_metadata(built.path / base_of(built).path).num_row_groups
    assert groups >= 2
    assert ("state" in read) == (not is_made_of_two(table_type, payload))
    built.delete([row(5), row(30), row(99)])
    built.upsert([row(number, "c", f"own {number}" * 300) for number in range(0, 100, 3)])
    if table_type == "mor":
        built.table.compact()
    built.check_snapshot()
    if payload == "overwrite":
        assert_same_rows(read_with_hudi_rs(built.path), built.table.to_arrow(meta_columns=True))
    numbers = built.table.to_arrow(columns=["_hoodie_commit_seqno"]).column(0).to_pylist()
    assert len(set(numbers)) == len(numbers)


def test_both_sides_have_one_form() -> None:
    stored = pa.table({"a": pa.chunked_array([pa.array(["x", None, "x"]).dictionary_encode()]), "b": ["p", "q", "r"]})
    given = pa.table({"more": [1], "b": ["s"], "a": pa.array([None], pa.string())})
    first, second = alike(stored, given)
    assert first.schema == second.schema == stored.schema
    assert second.to_pylist() == [{"a": None, "b": "s"}]
    unique = pa.table({"a": [f"text {number}" for number in range(100)], "b": ["s"] * 100})
    first, second = alike(stored, unique)
    assert first.schema == second.schema == pa.schema([("a", pa.string()), ("b", pa.string())])
    assert first.column("a").to_pylist() == ["x", None, "x"]


@pytest.mark.parametrize("values", [["a", None, "c", "a"], [None, None], [], ["a", "a"]])
def test_dictionaries_lose_what_no_row_has(values: list[str | None]) -> None:
    indices = pa.array([None if value is None else ["unused", "a", "b", "c"].index(value) for value in values], pa.int32())
    rows = pa.table({"a": pa.DictionaryArray.from_arrays(indices, pa.array(["unused", "a", "b", "c"])), "n": list(range(len(values)))})
    found = without_unused(rows)
    assert found.schema == rows.schema
    assert found.to_pylist() == rows.to_pylist()
    found.validate(full=True)
    names = {value for chunk in found.column("a").chunks for value in chunk.dictionary.to_pylist()}
    assert names == {value for value in values if value is not None}


def test_values_of_another_type_than_the_table_has_are_not_written() -> None:
    form = base_form(pa.schema([("n", pa.int64()), ("t", pa.string())]), WriteOptions())
    for values in (pa.array([1], pa.int32()), pa.array(["x"]), pa.array(["x"]).dictionary_encode()):
        with pytest.raises(ValueError, match="schema"):
            list(form.chunks(pa.table({"n": values})))
    assert list(form.chunks(pa.table({"t": pa.array(["x"]).dictionary_encode()})))


def test_values_at_places_are_no_dictionary() -> None:
    stored = pa.table({"a": pa.chunked_array([pa.array(["x", None, "y"]).dictionary_encode()]), "b": [1, 2, 3]})
    found = values_at(stored, ["a"], np.array([1, 2]))
    assert found.equals(pa.table({"a": pa.array([None, "y"])}))
