"""Every place of every key, whatever the files hold: ranges of keys of their own, all over the range, or the same keys again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine.engine import LocalRunner, weighed_out
from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.index import lookup
from lakehouse_engine.index.base import KeyedRows
from lakehouse_engine.index.lookup import TagTask, tag_files
from lakehouse_engine.index.simple import KeyColumnIndex, MetaColumnKeys, RowNumbers
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_SEQNO, RECORD_KEY
from lakehouse_engine.record import matching
from lakehouse_engine.record.matching import matches
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
FILES, ROWS = 7, 120


def ids(kind: str, number: int, chance: np.random.Generator) -> list[str]:
    """Keys of one file."""
    if kind == "ranges" or (kind == "both" and number % 2):
        return [f"{number:02d}-{row:04d}" for row in range(ROWS)]
    if kind == "repeated":
        return [f"{row:04d}" for row in chance.integers(0, 40, ROWS)]
    places = chance.integers(0, FILES, ROWS)
    return [f"{place:02d}-{row:04d}" for place, row in zip(places, range(number * ROWS, ROWS + number * ROWS), strict=True)]


def made(kind: str, seed: int) -> tuple[Storage, tuple[BaseFile, ...]]:
    """Files of several row groups each."""
    storage, chance = MemoryStorage(), np.random.default_rng(seed)
    create_table(storage, TableSpec("t", SCHEMA, ["id"], [], [], "cow"))
    table = LocalTable(storage, {"hoodie.parquet.small.file.limit": 0, "lakehouse.parquet.row.group.rows": 50})
    for number in range(FILES):
        keys = ids(kind, number, chance)
        table.bulk_insert(pa.table({"id": keys, "v": range(ROWS)}, schema=SCHEMA))
    bases = [piece.base_file for piece in table.state.view.latest_slices()]
    return storage, tuple(base for base in bases if base is not None)


def stored(storage: Storage, base: BaseFile, column: str) -> list[str]:
    tables = iter_base_file(storage, base, pa.schema([]), meta_columns=[column])
    return [key for table in tables for key in table.column(column).to_pylist()]


@pytest.mark.parametrize("use_bloom", [False, True], ids=["ranges alone", "with Bloom filters"])
@pytest.mark.parametrize("at_once", [2_000_000, 90], ids=["all at once", "some at once"])
@pytest.mark.parametrize("joined", [0, 100_000], ids=["joined", "looked up"])
@pytest.mark.parametrize("kind", ["ranges", "spread", "both", "repeated"])
def test_every_place_of_every_key_is_found(
    kind: str, joined: int, at_once: int, use_bloom: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "JOINED", joined)
    monkeypatch.setattr(lookup, "_AT_ONCE", at_once)
    monkeypatch.setattr(lookup, "_STORED_BYTES", 10 * at_once)
    storage, bases = made(kind, 3)
    assert len(bases) == FILES
    by_file = {base.path: stored(storage, base, RECORD_KEY) for base in bases}
    chance = np.random.default_rng(11)
    known = sorted({key for keys in by_file.values() for key in keys})
    asked = [*chance.permutation(known)[: len(known) // 3], *(f"{number:02d}-x" for number in range(FILES)), "", "zz"]
    keys, rows = pa.array(chance.permutation(asked)), np.arange(len(asked), dtype=np.int64) * 10 + 5
    found = tag_files(TagTask(storage, bases, MetaColumnKeys(), keys, rows, use_bloom))
    assert [one.base for one in found] == list(bases)
    number_of = {key: int(row) for key, row in zip(keys.to_pylist(), rows, strict=True)}
    for one in found:
        expected = [(at, number_of[key]) for at, key in enumerate(by_file[one.base.path]) if key in number_of]
        assert list(zip(one.positions.tolist(), one.rows.tolist(), strict=True)) == expected
        assert one.num_rows == ROWS
        assert one.bounds == (min(by_file[one.base.path]), max(by_file[one.base.path]))


def test_rows_are_found_by_their_numbers_where_the_range_of_keys_says_nothing() -> None:
    storage, bases = made("ranges", 1)
    numbers = stored(storage, bases[4], COMMIT_SEQNO)
    found = tag_files(TagTask(storage, bases, RowNumbers(), pa.array(["0_0_0", numbers[7], numbers[2]]), None, False))
    assert [one.positions.tolist() for one in found] == [[2, 7] if number == 4 else [] for number in range(FILES)]
    assert found[4].rows.tolist() == [2, 1]
    assert {one.bounds for one in found} == {None}


def test_files_that_may_have_any_of_the_keys_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of the keys for a look is made once for all of them."""
    storage, bases = made("spread", 5)
    keys = pa.array(sorted({key for base in bases for key in stored(storage, base, RECORD_KEY)}))
    calls: list[int] = []

    def counted(values: pa.ChunkedArray, wanted: pa.Array) -> tuple[lookup.Rows, lookup.Rows]:
        calls.append(len(wanted))
        return matches(values, wanted)

    monkeypatch.setattr(lookup, "matches", counted)
    tag_files(TagTask(storage, bases, MetaColumnKeys(), keys, None, False))
    assert calls == [len(keys)]
    calls.clear()
    storage, bases = made("ranges", 5)
    keys = pa.array(sorted({key for base in bases for key in stored(storage, base, RECORD_KEY)}))
    tag_files(TagTask(storage, bases, MetaColumnKeys(), keys, None, False))
    assert calls == [ROWS] * FILES


def test_files_are_shared_out_by_their_size() -> None:
    """In this process a part for each thread, for each looks with a hash table of its own."""
    weights = [5, 90, 40, 50, 3]
    assert weighed_out("abcde", weights, LocalRunner(2)) == [("b", "a"), ("d", "c", "e")]
    assert weighed_out("abcde", weights, LocalRunner(9)) == [("b",), ("d",), ("c",), ("a",), ("e",)]
    assert weighed_out("", [], LocalRunner(2)) == []
    assert weighed_out("abcd", [-1] * 4, LocalRunner(2)) == [("a", "c"), ("b", "d")], "of files that were not listed"


def test_what_was_found_is_told_in_the_order_of_files() -> None:
    storage, bases = made("spread", 1)
    keys = pa.array([key for base in bases for key in stored(storage, base, RECORD_KEY)])
    view = LocalTable(storage, {}).state.view
    batch = KeyedRows(keys, {"": np.arange(len(keys))})
    found = [KeyColumnIndex(True, False).tag(storage, view, batch, MetaColumnKeys(), LocalRunner(threads)) for threads in (1, 2, 5)]
    assert [one.base.path for one in found[0]] == sorted(base.path for base in bases)
    for other in found[1:]:
        assert [(one.base, one.positions.tolist(), one.rows.tolist()) for one in other] == [
            (one.base, one.positions.tolist(), one.rows.tolist()) for one in found[0]
        ]
