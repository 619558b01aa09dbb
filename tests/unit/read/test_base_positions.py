"""Log blocks that say which base rows they take the place of: what is read by that is what is read by keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import CorruptLogError, DuplicateKeyError, FormatError
from lakehouse_engine.files import base_positions
from lakehouse_engine.files.base_positions import PositionForm
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import BaseRowsBy, KnownRows, SliceReader
from lakehouse_engine.format.log.positions import KEY, MOST_ROWS, BaseRows, parse_positions, render_positions
from lakehouse_engine.read.scan import plan_incremental, plan_snapshot
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.report import FindingKind
from lakehouse_engine.verify.table import verify
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.plan import mor_upsert
from lakehouse_engine.write.plan.mor_changes import SliceChange
from tests.support.properties import edit_properties
from tests.support.routes import route
from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import table_version, version_of_new_tables

__all__ = ["pytest_generate_tests", "route", "table_version"]

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.string()), ("day", pa.string())])
PAYLOAD = "hoodie.datasource.write.payload.class"


def rows(ids: Sequence[int], ts: int | None, text: str = "") -> pa.Table:
    return pa.table([list(ids), [ts] * len(ids), [f"{text}{one}" for one in ids], [f"d{one % 2}" for one in ids]], schema=SCHEMA)


def made(
    folder: Path,
    *,
    ordering: bool = True,
    day: bool = False,
    properties: Mapping[str, str] | None = None,
    first: pa.Table | None = None,
) -> HoodieTable:
    """Of the rows `first`, with the columns of theirs that are as here."""
    first = rows(range(100), 5) if first is None else first
    spec = TableSpec(
        name="t",
        schema=first.schema,
        record_key=["id"],
        ordering_fields=["ts"] if ordering else [],
        partition_by=["day"] if day else [],
        table_type="mor",
        properties={"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false", **(properties or {})},
        version=version_of_new_tables(),
    )
    create_table(LocalStorage(str(folder / "t")), spec)
    table = HoodieTable.open(str(folder / "t"))
    table.bulk_insert(first)
    return table


def known(table: HoodieTable, **query: Any) -> list[bool]:
    """Of each slice with logs whether nothing of its base rows is read; that this changes nothing of what comes out is checked."""
    plan = plan_incremental(table.state, **query) if "begin" in query else plan_snapshot(table.state, **query)
    assert plan.reader is not None
    found, columns = [], ["_hoodie_record_key", "_hoodie_commit_seqno", *SCHEMA.names]
    by_key = replace(plan.reader, base_rows=BaseRowsBy.KEYS)
    for piece in plan.logged:
        here, there = plan.reader.changes(piece, columns), by_key.changes(piece, columns)
        assert here.removed.tolist() == there.removed.tolist()
        assert here.added.equals(there.added)
        assert here.base_rows == there.base_rows
        for names in (columns, ["v"], []):
            assert plan.reader.read(piece, names).equals(by_key.read(piece, names))
        found.append(plan.reader.merge(piece, columns).settled)
        assert by_key.merge(piece, columns).known is None
    return found


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("ordering", [True, False])
@pytest.mark.parametrize("day", [True, False])
def test_updates_are_found_in_the_base_file_without_its_keys(
    tmp_path: Path, index: str, ordering: bool, day: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, ordering=ordering, day=day, properties={"hoodie.index.type": index})
    table.upsert(rows([3, 98, 7, 40], 6, "a"))
    table.upsert(rows([7, 2, 40, 99, 3], 4, "late"))
    table.upsert(rows([41, 40], 7, "b"))
    by_position = known(table)
    assert by_position
    assert all(by_position)

    def unread(*_: object) -> None:
        raise AssertionError("the base file is read")

    before = table.to_arrow().sort_by("id")
    monkeypatch.setattr(SliceReader, "_stored", unread)
    plan = plan_snapshot(table.state)
    assert plan.reader is not None
    removed = sum(len(plan.reader.changes(piece, ["id"]).removed) for piece in plan.logged)
    assert removed == (5 if ordering else 7)
    assert before["v"].to_pylist()[40] == "b40"


@pytest.mark.parametrize("ordering", [True, False])
def test_no_key_of_the_logs_is_read_where_all_rows_have_a_place(tmp_path: Path, ordering: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path, ordering=ordering)
    table.upsert(rows([3, 98, 7, 40], 6, "a"))
    table.upsert(rows([7, 3, 99], 4, "late"))
    table.upsert(rows([7, 40], 7, "b"))
    plan = plan_snapshot(table.state)
    assert plan.reader is not None
    expected = replace(plan.reader, base_rows=BaseRowsBy.KEYS).changes(plan.logged[0], ["id", "v"])
    monkeypatch.setattr(MergeRules, "record_keys", lambda *_: pytest.fail("keys are read"))
    found = plan.reader.changes(plan.logged[0], ["id", "v"])
    assert found.removed.tolist() == expected.removed.tolist()
    assert found.added.equals(expected.added)


@pytest.mark.table_versions(6)
def test_rows_that_may_be_deletions_are_compared_with_base_rows(tmp_path: Path) -> None:
    marked = pa.table({"id": [1, 2, 3], "ts": [5, 5, 5], "v": ["a", "b", "c"], "_hoodie_is_deleted": [False, False, False]})
    table = made(tmp_path, first=marked)
    table.upsert(marked.slice(0, 2).set_column(1, "ts", pa.array([6, 6])))
    table.upsert(marked.slice(1, 1).set_column(1, "ts", pa.array([7])).set_column(3, "_hoodie_is_deleted", pa.array([True])))
    assert sorted(table.to_arrow(["id", "ts"]).to_pylist(), key=str) == [{"id": 1, "ts": 6}, {"id": 3, "ts": 5}]
    plan = plan_snapshot(table.state)
    assert plan.reader is not None
    assert not plan.reader.merge(plan.logged[0], ["id"]).settled


@pytest.mark.table_versions(6)
def test_blocks_of_any_write_are_read_as_of_any_moment(tmp_path: Path) -> None:
    table = made(tmp_path)
    instants = [str(table.upsert(rows(range(at, 60, 7), 6 + at, f"{at}-")).instant) for at in range(4)]
    for instant in instants:
        assert known(table, as_of=instant) == [True]
    assert known(table, begin=instants[1]) == [False]  # of the base file, which is older, nothing is read
    assert known(table, begin="000", end=instants[2]) == [True]


def test_rows_of_new_keys_have_no_place(tmp_path: Path) -> None:
    table = made(tmp_path, properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    table.upsert(rows([1, 500], 6, "new"))
    assert known(table) == [False]  # a bucket's log takes rows of which nobody looked whether they are stored


@pytest.mark.table_versions(6)
@pytest.mark.parametrize("write", ["delete", "revive"])
def test_a_slice_with_deletions_is_read_by_keys(tmp_path: Path, write: str) -> None:
    table = made(tmp_path, day=True)
    table.upsert(rows([1, 2], 6, "a"))
    assert known(table) == [True, True]
    table.delete(pa.table({"id": [1], "day": ["d1"]}))
    if write == "revive":
        table.upsert(rows([1], 9, "back"))
    assert sorted(known(table)) == [False, True]


@pytest.mark.table_versions(6)
def test_a_log_is_not_read_by_the_positions_of_another_base_file(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows([50], 6, "before"))
    table.services.compact("schedule")
    first = table.upsert(rows([50, 20], 6, "pending")).instant
    assert known(table) == [True]  # of the file that is still the newest
    table.services.compact("run")
    assert known(table) == [False]
    table.upsert(rows([20], 7, "later"))
    assert known(table) == [False]
    assert known(table, as_of=str(first))
    table.services.compact()
    table.upsert(rows([20, 21], 8, "again"))
    assert known(table) == [True]


def test_a_merged_log_says_what_its_logs_said(tmp_path: Path) -> None:
    table = made(tmp_path)
    for at in range(3):
        table.upsert(rows([at, 10, 20 + at], 6 + at, f"{at}-"))
    table.services.log_compact(options={"hoodie.log.compaction.blocks.threshold": 2})
    plan = plan_snapshot(table.state)
    assert plan.reader is not None
    assert len(plan.reader.merge(plan.logged[0], ["id"]).scanned.blocks) == 1
    assert known(table) == [True]


@pytest.fixture
def logged_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of keys that are stored more than once are logged, as by others."""
    monkeypatch.setattr(mor_upsert, "repeated", lambda rows: np.zeros(len(rows), dtype=bool))


@pytest.mark.usefixtures("logged_all_the_same")
def test_a_key_that_is_stored_twice_is_looked_for(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.insert_overwrite(rows([1, 2, 3, 2], 5))
    table.upsert(rows([1, 2], 6, "both"))
    assert known(table) == [False]
    assert table.to_arrow()["v"].to_pylist().count("both2") == 2


@pytest.mark.table_versions(6)
@pytest.mark.parametrize("payload", ["FirstValueAvroPayload", "PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"])
def test_positions_are_not_enough_where_a_base_row_may_stay_or_be_mixed(tmp_path: Path, payload: str) -> None:
    table = made(tmp_path, properties={PAYLOAD: payload})
    table.upsert(rows([1, 2], 6, "a"))
    assert known(table) == [False]


@pytest.mark.table_versions(6)
def test_a_table_that_merges_by_another_rule_by_now_is_read_by_keys(tmp_path: Path) -> None:
    table = made(tmp_path, ordering=False)
    table.upsert(rows([1, 2], 3, "a"))
    assert known(table) == [True]
    edit_properties(
        tmp_path / "t",
        {
            "OverwriteWithLatestAvroPayload": "DefaultHoodieRecordPayload",
            "hoodie.table.name=t": "hoodie.table.name=t\nhoodie.table.precombine.field=ts",
        },
    )
    table = HoodieTable.open(str(tmp_path / "t"))
    assert known(table) == [False]
    assert table.to_arrow().sort_by("id")["v"].to_pylist()[1] == "1"


@pytest.mark.parametrize("options", [{"hoodie.write.record.positions": False}, {"hoodie.logfile.data.block.format": "AVRO"}])
def test_a_write_that_says_none(tmp_path: Path, options: dict[str, Any]) -> None:
    table = made(tmp_path)
    table.upsert(rows([1, 2], 6, "a"), options=options)
    assert known(table) == [False]
    assert KEY.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "t").rglob("*.log.*"))
    table.upsert(rows([3], 6, "a"))
    assert known(table) == [False]


@pytest.mark.table_versions(6)
@pytest.mark.parametrize(("wrong", "row"), [(lambda right: right + 98, 100), (lambda right: right * 0 + 7, 7)])
def test_a_row_that_the_base_file_does_not_have_and_a_row_of_two_keys_is_damage(
    tmp_path: Path, wrong: Callable[[Any], Any], row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    monkeypatch.setattr(SliceChange, "base_positions", lambda change: wrong(change.positions.astype(np.int32)))
    table.upsert(rows([1, 2], 6, "a"))
    with pytest.raises(CorruptLogError, match=f"replaces row {row} of its base file"):
        table.to_arrow()
    assert [finding.kind for finding in verify(table.state).findings] == [FindingKind.UNREADABLE_FILE]


def test_verify_finds_two_keys_that_two_blocks_say_are_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query, which goes by the rows, takes them for one key."""
    table = made(tmp_path)
    table.upsert(rows([7], 6, "a"))
    monkeypatch.setattr(SliceChange, "base_positions", lambda change: change.positions.astype(np.int32) * 0 + 7)
    table.upsert(rows([8], 6, "b"))
    assert [finding.kind for finding in verify(table.state).findings] == [FindingKind.UNREADABLE_FILE]


def test_verify_finds_a_wrong_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    monkeypatch.setattr(SliceChange, "base_positions", lambda change: change.positions.astype(np.int32) + 1)
    table.upsert(rows([1], 6, "a"))
    assert [finding.kind for finding in verify(table.state).findings] == [FindingKind.DUPLICATE_KEY]


@pytest.mark.table_versions(6)
def test_a_footer_that_does_not_parse_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    monkeypatch.setattr(base_positions, "render_positions", lambda *_: {KEY: '{"version": 1, "rows": 2}'})
    table.upsert(rows([1, 2], 6, "a"))
    with pytest.raises(CorruptLogError, match="what a block at byte 0 of the log file"):
        table.to_arrow()


@pytest.mark.usefixtures("logged_all_the_same")
def test_a_row_that_is_made_of_two_may_be_behind_what_it_was_not_made_of(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.insert_overwrite(pa.table([[1, 1], [5, 10], ["first", "second"], ["d1", "d1"]], schema=SCHEMA))
    table.upsert(rows([1], 7, "a"), merge_update_columns=["v"])
    assert known(table) == [False]


def test_of_a_key_in_two_partitions_each_stays_what_it_is(tmp_path: Path) -> None:
    table = made(tmp_path, day=True, properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.insert_overwrite_table(pa.table([[1, 1], [6, 3], ["a", "b"], ["d1", "d2"]], schema=SCHEMA))
    with pytest.raises(DuplicateKeyError, match=r"the key '1' is stored more than once.*Write whole rows of it"):
        table.upsert(rows([1], 7, "both"), merge_update_columns=["v"])
    assert sorted(table.to_arrow(["v", "day"]).to_pylist(), key=str) == [{"v": "a", "day": "d1"}, {"v": "b", "day": "d2"}]


def test_places_in_a_binary_log_are_another_rule_than_their_texts(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows([1], 7))
    reader = plan_snapshot(table.state).reader
    assert reader is not None
    as_text = reader.rules
    as_place = replace(as_text, ordering=replace(as_text.ordering, binlog=True))
    assert as_text.settled(SCHEMA) != as_place.settled(SCHEMA)


def test_a_clone_is_merged_by_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "house" / "shop").upsert(rows([1, 2], 6, "a"))
    monkeypatch.setattr(KnownRows, "of", lambda _: pytest.fail("rows of a clone are found by their positions"))
    house = Lakehouse(str(tmp_path / "house"))
    house.clone("shop.t", "shop.u")
    assert house.table("shop.u").to_arrow().num_rows == 100


# the text


@pytest.mark.table_versions(6)
@pytest.mark.parametrize("count", [0, 1, 255, 70_000])
def test_positions_come_back_as_they_were(count: int) -> None:
    positions = np.random.default_rng(count).integers(-1, 2**31 - 1, count).astype(np.int32)
    base = BaseRows("ü_1-0-1_2.parquet", 2**40, "highest, a.b timestamp[us, tz=UTC]")
    text = render_positions(base, positions)[KEY]
    found = parse_positions({KEY.encode(): text.encode()}, count)
    assert found is not None
    assert text.isascii()
    assert found[0] == base
    assert found[1].tolist() == positions.tolist()


@pytest.mark.table_versions(6)
def test_a_later_version_says_nothing_to_this_one() -> None:
    assert parse_positions({KEY.encode(): b'{"version": 2}'}, 3) is None
    assert parse_positions({}, 3) is None
    assert parse_positions(None, 3) is None


@pytest.mark.table_versions(6)
@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_a_damaged_text_is_refused(cut: int) -> None:
    text = render_positions(BaseRows("f", 1, "latest"), np.arange(20, dtype=np.int32))[KEY]
    with pytest.raises(FormatError):
        parse_positions({KEY.encode(): (text[:cut] + text[cut + 3 :]).encode()}, 20)


@pytest.mark.table_versions(6)
def test_of_another_number_of_rows_they_are_refused() -> None:
    text = render_positions(BaseRows("f", 1, "latest"), np.arange(20, dtype=np.int32))[KEY]
    with pytest.raises(FormatError, match="of 20 rows, and it has 21"):
        parse_positions({KEY.encode(): text.encode()}, 21)


@pytest.mark.table_versions(6)
def test_of_a_block_with_very_many_rows_none_are_written(tmp_path: Path) -> None:
    plan = plan_snapshot(made(tmp_path).state)
    form = PositionForm(plan.files[0], "latest", in_headers=False)
    few, many = (np.zeros(count, np.int32) for count in (MOST_ROWS, MOST_ROWS + 1))
    assert [bool(form.of_rows(one).footer) for one in (few, many)] == [True, False]
