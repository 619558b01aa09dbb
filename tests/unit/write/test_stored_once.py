"""Writes that meet keys which are stored more than once, as `insert` and `insert_overwrite` allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import DuplicateKeyError, RepeatedKeyError
from lakehouse_engine.model.keys import COMMIT_SEQNO, FILE_NAME, PARTITION_PATH, RECORD_KEY
from tests.support.readers import assert_same_rows, read_with_hudi_rs

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.string())])
INDEXES: dict[str, dict[str, str]] = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}
LARGE = {"lakehouse.write.broadcast.max.bytes": "0"}
SEVERAL = [(1, "a"), (1, "b"), (1, "c"), (2, "x"), (3, "y")]
"""One key three times, and two of them once."""


def rows(*given: tuple[int, str]) -> pa.Table:
    return pa.table([[one for one, _ in given], ["p"] * len(given), [v for _, v in given]], schema=SCHEMA)


def content(table: HoodieTable) -> list[tuple[int, str]]:
    return sorted((one["id"], one["v"]) for one in table.to_arrow().to_pylist())


def checked(table: HoodieTable) -> list[tuple[int, str]]:
    """The rows, which hudi-rs has to see, too."""
    assert_same_rows(read_with_hudi_rs(Path(table.path)), HoodieTable.open(table.path).to_arrow(meta_columns=True))
    return content(table)


def places(table: HoodieTable, *values: str) -> pa.Table:
    read = table.to_arrow(meta_columns=True).filter(pc.is_in(pc.field("v"), pa.array(values)))
    return read.select([COMMIT_SEQNO, PARTITION_PATH, FILE_NAME])


@pytest.fixture(params=[f"{kind} {index}" for kind in ("cow", "mor") for index in INDEXES])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    kind, index = request.param.split()
    made = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["p"], table_type=kind, properties=INDEXES[index]
    )
    made.insert_overwrite(rows(*SEVERAL))
    return made


@pytest.mark.parametrize("route", [{}, LARGE], ids=["small", "large"])
def test_single_rows_of_a_key_that_is_stored_several_times_are_refused_and_others_written(
    table: HoodieTable, route: dict[str, str]
) -> None:
    before, keys = table.timeline, ["id", "p"]
    for write in (
        lambda: table.upsert(rows((1, "new")), single_rows=True, options=route),
        lambda: table.delete(rows((2, ""), (1, "")).select(keys), single_rows=True, options=route),
        lambda: table.upsert(rows((4, "new")), delete_keys=rows((1, "")).select(keys), single_rows=True, options=route),
    ):
        with pytest.raises(RepeatedKeyError, match=r"the key '1' is stored 3 times.*INSERT OVERWRITE.*table=t"):
            write()
    assert table.timeline == before
    table.upsert(rows((2, "new"), (4, "new")), delete_keys=rows((3, "")).select(keys), single_rows=True, options=route)
    assert checked(table) == [(1, "a"), (1, "b"), (1, "c"), (2, "new"), (4, "new")]
    table.delete(rows((2, ""), (5, "")).select(keys), single_rows=True, options=route)
    assert checked(table) == [(1, "a"), (1, "b"), (1, "c"), (4, "new")]


@pytest.mark.parametrize("route", [{}, LARGE], ids=["small", "large"])
def test_single_rows_take_the_place_of_single_rows_whatever_else_is_stored_of_their_key(
    table: HoodieTable, route: dict[str, str]
) -> None:
    table.upsert(rows((3, "logged")), options=route)
    given: dict[str, Any] = {"single_rows": True, "options": route}
    result = table.replace_rows(rows((1, "B"), (2, "X")), replaced=places(table, "b", "x"), **given)
    assert (result.inserts, result.deletes) == (2, 2)
    assert checked(table) == [(1, "B"), (1, "a"), (1, "c"), (2, "X"), (3, "logged")]
    table.replace_rows(rows(), replaced=places(table, "a"), **given)
    assert checked(table) == [(1, "B"), (1, "c"), (2, "X"), (3, "logged")]


@pytest.mark.parametrize("index", ["simple", "global"])
@pytest.mark.parametrize("logged", [False, True], ids=["without logs", "with logs"])
def test_readers_agree_on_a_key_that_is_stored_several_times_and_is_changed_by_key(tmp_path: Path, index: str, logged: bool) -> None:
    lake = Lakehouse(str(tmp_path))
    made = [
        lake.create_table(f"s.{kind}", schema=SCHEMA, record_key=["id"], partition_by=["p"], table_type=kind, properties=INDEXES[index])
        for kind in ("cow", "mor")
    ]
    for table in made:
        table.insert_overwrite(rows(*SEVERAL, (4, "d"), (4, "e")))
        if logged:
            table.upsert(rows((3, "logged")))
        table.upsert(rows((1, "new"), (2, "new")), delete_keys=rows((4, "")).select(["id", "p"]))
        assert checked(table) == [(1, "new"), (1, "new"), (1, "new"), (2, "new"), (3, "logged" if logged else "y")]
        table.delete(rows((1, "")).select(["id", "p"]))
        assert checked(table) == [(2, "new"), (3, "logged" if logged else "y")]


@pytest.mark.parametrize("route", [{}, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_of_a_table_without_a_key_keep_their_generated_keys_and_new_ones_get_some(
    tmp_path: Path, kind: str, route: dict[str, str]
) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, partition_by=["p"], table_type=kind)
    table.insert(rows((1, "a"), (1, "b"), (2, "c")))
    before = table.to_arrow(meta_columns=True)
    keys = dict(zip(before["v"].to_pylist(), before[RECORD_KEY].to_pylist(), strict=True))
    given = rows((1, "B"), (9, "x"), (9, "x")).append_column(RECORD_KEY, pa.array([keys["b"], None, None]))
    result = table.upsert(given, given_keys=True, as_given=True, single_rows=True, options=route)
    assert (result.updates, result.inserts) == (1, 2)
    assert checked(table) == [(1, "B"), (1, "a"), (2, "c"), (9, "x"), (9, "x")]
    after = table.to_arrow(meta_columns=True)
    assert len(set(after[RECORD_KEY].to_pylist())) == 5
    assert set(after.filter(pc.field("id") == 1)[RECORD_KEY].to_pylist()) == {keys["a"], keys["b"]}


@pytest.mark.parametrize("table", [f"mor {index}" for index in INDEXES], indirect=True)
def test_updates_of_some_columns_of_a_key_that_is_stored_several_times_say_what_to_do(table: HoodieTable) -> None:
    with pytest.raises(DuplicateKeyError, match=r"the key '1' is stored more than once.*delete the key before"):
        table.upsert(rows((1, "new")), merge_update_columns=["v"])
