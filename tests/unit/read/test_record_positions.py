"""Positions in headers of log blocks (table versions 8 and 9): who writes which, and what is read by them is what is read by keys."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine.errors import CorruptLogError
from lakehouse_engine.files import base_positions
from lakehouse_engine.files.base_positions import PositionForm
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import BaseRowsBy, SliceReader
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey, LogBlock
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.table import HoodieTable
from tests.support.versions import tables_of
from tests.unit.read.test_base_positions import known, made, rows

AVRO = {"hoodie.logfile.data.block.format": "AVRO"}


@pytest.fixture(autouse=True, params=[8, 9])
def later_version(request: pytest.FixtureRequest) -> Iterator[None]:
    with tables_of(request.param):
        yield


def blocks(table: HoodieTable) -> list[LogBlock]:
    """Those of all logs of the newest slices, in their order."""
    storage, pieces = table.state.storage, table.state.view.latest_slices()
    return [block for piece in pieces for log in piece.log_files for block in read_blocks(storage.read(log.path))]


def keys_at(table: HoodieTable, positions: Sequence[int]) -> list[int]:
    stored = table.to_arrow(["id"], query="read_optimized")["id"].to_pylist()
    return [stored[at] for at in positions]


def merged(table: HoodieTable) -> list[tuple[bool, bool]]:
    """Of each slice with logs whether base rows are found by position, and whether nothing of them is read."""
    plan = plan_snapshot(table.state)
    assert plan.reader is not None
    known(table)
    merges = [plan.reader.merge(piece, ["id"]) for piece in plan.logged]
    return [(one.known is not None, one.settled) for one in merges]


@pytest.mark.parametrize("options", [{}, AVRO])
def test_headers_have_ascending_positions_in_the_order_of_the_records(tmp_path: Path, options: dict[str, Any]) -> None:
    table = made(tmp_path)
    table.upsert(rows([40, 3, 98, 7], 6, "a"), options=options)
    table.delete(pa.table({"id": [77, 5, 40]}))
    data, deletions = blocks(table)
    [base] = [piece.base_file for piece in table.state.view.latest_slices()]
    assert base is not None
    for block, ids in ((data, [3, 7, 40, 98]), (deletions, [5, 40, 77])):
        assert block.base_instant == base.instant_time
        assert block.record_positions is not None
        assert keys_at(table, block.record_positions.tolist()) == ids
    assert deletions.type is BlockType.DELETE
    assert merged(table) == [(True, not options)]
    assert table.to_arrow().num_rows == 97


def test_no_key_is_read_where_rows_are_deleted_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    table.upsert(rows([40, 3], 6, "a"))
    table.delete(pa.table({"id": [40, 5]}))
    table.upsert(rows([40], 9, "back"))
    assert merged(table) == [(True, True)]
    plan = plan_snapshot(table.state)
    assert plan.reader is not None
    expected = replace(plan.reader, base_rows=BaseRowsBy.KEYS).changes(plan.logged[0], ["id", "v"])
    monkeypatch.setattr(MergeRules, "record_keys", lambda *_: pytest.fail("keys are read"))
    monkeypatch.setattr(SliceReader, "_stored", lambda *_: pytest.fail("the base file is read"))
    found = plan.reader.changes(plan.logged[0], ["id", "v"])
    assert found.removed.tolist() == expected.removed.tolist()
    assert found.added.equals(expected.added)
    assert sorted(found.added["v"].to_pylist()) == ["a3", "back40"]


def test_rows_of_another_writer_are_compared_with_base_rows_at_their_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not say that each of its rows wins, so they need not."""
    table = made(tmp_path)
    monkeypatch.setattr(base_positions, "render_rule", lambda _: {})
    table.upsert(rows([40, 3], 6, "a"))
    assert merged(table) == [(True, False)]
    monkeypatch.setattr(MergeRules, "record_keys", lambda *_: pytest.fail("keys are read"))
    assert table.to_arrow().sort_by("id")["v"].to_pylist()[40] == "a40"


def test_where_the_last_commit_wins_rows_of_any_writer_do(tmp_path: Path) -> None:
    table = made(tmp_path, ordering=False)
    table.upsert(rows([40, 3], 1, "a"), options=AVRO)
    assert merged(table) == [(True, True)]


@pytest.mark.parametrize("switched_off", [0, 1, 2])
def test_all_blocks_have_to_say_positions(tmp_path: Path, switched_off: int) -> None:
    table = made(tmp_path)
    for number in range(3):
        table.upsert(rows([number, 50], 6 + number, f"{number}-"), options={"hoodie.write.record.positions": number != switched_off})
    assert [block.record_positions is None for block in blocks(table)] == [number == switched_off for number in range(3)]
    assert merged(table) == [(False, False)]


def test_new_keys_of_a_bucket_have_no_positions(tmp_path: Path) -> None:
    table = made(tmp_path, properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    table.upsert(rows([1, 500], 6, "new"))
    [block] = blocks(table)
    assert block.record_positions is None
    assert block.base_instant is None


def test_positions_are_of_the_base_file_that_was_there(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.services.compact("schedule")
    table.upsert(rows([50], 6, "before"))
    table.services.compact("schedule")
    table.upsert(rows([50, 20], 6, "pending"))
    assert merged(table) == [(True, True)]
    table.services.compact("run")
    assert merged(table) == [(False, False)]
    table.delete(pa.table({"id": [20]}))
    assert merged(table) == [(False, False)]


def test_a_log_compaction_says_positions_of_rows_and_deletions(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows([7, 3, 50], 6, "a"))
    table.delete(pa.table({"id": [50, 9]}))
    table.upsert(rows([98, 3], 7, "b"))
    before = table.to_arrow().sort_by("id")
    table.services.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2})
    compacted = [block for block in blocks(table) if HeaderKey.COMPACTED_BLOCK_TIMES in block.header]
    said = [keys_at(table, block.record_positions.tolist()) for block in compacted if block.record_positions is not None]
    assert said == [[3, 7, 98], [9, 50]]
    assert merged(table) == [(True, True)]
    assert table.to_arrow().sort_by("id").equals(before)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ordering", [True, False])
def test_a_mixed_load_reads_by_positions_as_by_keys(tmp_path: Path, ordering: bool, seed: int) -> None:
    chance, seen = random.Random(seed), set()
    table = made(tmp_path, ordering=ordering, day=bool(seed % 2), first=rows(range(30), 5))
    for step in range(8):
        options = {"hoodie.write.record.positions": chance.random() < 0.9, "hoodie.parquet.small.file.limit": 0}
        options |= AVRO if chance.random() < 0.3 else {}
        some = chance.sample(range(34), 6)
        if chance.random() < 0.3:
            table.delete(rows(some, None).select(["id", "day"]), options=options)
        elif chance.random() < 0.2:
            table.services.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2})
        else:
            names = chance.choice([None, ["v"], ["v", "ts"]])
            table.upsert(rows(some, chance.choice([None, 3, 5, 6 + step]), f"{step}-"), options=options, merge_update_columns=names)
        if blocks(table):
            seen.update(merged(table))
    assert any(by_position for by_position, _ in seen)


# damage


def said(monkeypatch: pytest.MonkeyPatch, positions: Sequence[int]) -> None:
    right = PositionForm.of_deletions
    monkeypatch.setattr(PositionForm, "of_deletions", lambda form, _: replace(right(form, np.array(positions)), order=None))


@pytest.mark.parametrize(("positions", "message"), [([7], "has 2 records, and positions of 1"), ([3, 100], "replaces row 100 of its base")])
def test_wrong_positions_are_damage(tmp_path: Path, positions: list[int], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    said(monkeypatch, positions)
    table.upsert(rows([3, 4], 6, "a"))
    with pytest.raises(CorruptLogError, match=message):
        table.to_arrow()


def test_positions_that_do_not_parse_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    monkeypatch.setattr(base_positions, "encode_record_positions", lambda _: "????")
    table.upsert(rows([3, 4], 6, "a"))
    with pytest.raises(CorruptLogError, match=r"says of positions does not parse.*no base64"):
        table.to_arrow()


def test_a_position_that_no_base_file_can_have_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    said(monkeypatch, [3, 2**31])
    table.upsert(rows([3, 4], 6, "a"))
    with pytest.raises(CorruptLogError, match=f"no base file has a row {2**31}"):
        table.to_arrow()


def test_a_form_without_a_base_file_says_nothing() -> None:
    assert PositionForm(None, "latest", in_headers=True).of_rows(np.array([1])).header == {}
    base = BaseFile("", "f", "0-1-0", "20260101000000000")
    for positions in ([], [3, -1], [3, 3]):
        assert PositionForm(base, "latest", in_headers=True).of_deletions(np.array(positions, np.int64)).header == {}
