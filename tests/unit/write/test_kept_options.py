"""A table keeps no options with which its next write would be refused, and no call passes over a value that it does not need."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import OptionError, UnsupportedTableError
from lakehouse_engine.options import OPTIONS
from lakehouse_engine.options.base import Option
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.write.alter import set_properties

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("op", pa.string())])
ROWS = pa.table({"id": [1], "n": [1], "op": ["I"]}, schema=SCHEMA)
NOT_A_VALUE = "[not! a value, [not! a value"
CONTRADICTIONS = (
    {"hoodie.keep.min.commits": "50"},
    {"hoodie.clean.commits.retained": "40", "hoodie.keep.min.commits": "20", "hoodie.keep.max.commits": "45"},
)
RULES = (
    {"hoodie.datasource.write.payload.class": "com.example.Own"},
    {"hoodie.datasource.write.payload.class": "PartialUpdateAvroPayload"},
    {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
    {"hoodie.payload.delete.field": "op"},
)


def _takes_any_text(option: Option[object]) -> bool:
    return option.parse is str


PARSED = sorted(name for name, option in OPTIONS.items() if not _takes_any_text(option))


def _table(folder: Path, properties: dict[str, str] | None = None, *, table_type: str = "mor", **options: str) -> HoodieTable:
    lake = Lakehouse(str(folder), options=options)
    return lake.create_table(
        "s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["n"], table_type=table_type, properties=properties or {}
    )


def _alter(table: HoodieTable, changes: dict[str, str]) -> None:
    before = table.config.properties
    with pytest.raises(OptionError):
        set_properties(table.storage, changes, lock_timeout_ms=1000)
    assert ConfigStore(table.storage).read().properties == before


@pytest.mark.parametrize("key", PARSED)
def test_a_value_that_does_not_parse_is_refused_wherever_it_is_given(tmp_path: Path, key: str) -> None:
    with pytest.raises(OptionError, match=key):
        _table(tmp_path, {key: NOT_A_VALUE})
    table = _table(tmp_path)
    _alter(table, {key: NOT_A_VALUE})
    with pytest.raises(OptionError, match=key):
        HoodieTable.open(table.path, options={key: NOT_A_VALUE})
    with pytest.raises(OptionError, match=key):
        table.upsert(ROWS, options={key: NOT_A_VALUE})
    assert HoodieTable.open(table.path).upsert(ROWS).inserts == 1


@pytest.mark.parametrize("kept", CONTRADICTIONS)
def test_options_that_contradict_each_other_are_not_kept(tmp_path: Path, kept: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"is more than|is not more than"):
        _table(tmp_path, kept)
    _alter(_table(tmp_path), kept)


def test_what_the_options_of_the_warehouse_make_possible_is_kept(tmp_path: Path) -> None:
    table = _table(tmp_path, {"hoodie.keep.min.commits": "50"}, **{"hoodie.keep.max.commits": "60"})
    assert table.upsert(ROWS).inserts == 1


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("kept", RULES)
def test_rules_of_merging_other_than_the_tables_are_not_kept(tmp_path: Path, table_type: str, kept: dict[str, str]) -> None:
    _alter(_table(tmp_path, table_type=table_type), kept)


def test_marks_of_deletions_can_be_changed_where_no_log_is_merged_by_them(tmp_path: Path) -> None:
    marks = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
    _alter(_table(tmp_path / "mor"), marks)
    plain = _table(tmp_path / "cow", table_type="cow")
    set_properties(plain.storage, marks, lock_timeout_ms=1000)
    table = HoodieTable.open(plain.path)
    table.upsert(ROWS)
    assert table.upsert(pa.table({"id": [1], "n": [2], "op": ["D"]}, schema=SCHEMA)).deletes == 1


def test_buckets_that_change_are_not_kept(tmp_path: Path) -> None:
    table = _table(tmp_path)
    before = table.config.properties
    with pytest.raises(UnsupportedTableError, match="CONSISTENT_HASHING is not supported"):
        set_properties(table.storage, {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, lock_timeout_ms=1000)
    assert ConfigStore(table.storage).read().properties == before
    kept = {"lakehouse.default.hoodie.index.bucket.engine": "CONSISTENT_HASHING"}  # as earlier versions did
    ConfigStore(table.storage).update(kept)
    set_properties(table.storage, {"hoodie.index.bucket.engine": None}, lock_timeout_ms=1000)
    assert table.upsert(ROWS).inserts == 1


_NEW, _OLD = "hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained"


@pytest.mark.parametrize(("weak", "strong"), [(_NEW, _OLD), (_OLD, _NEW), (_NEW, _NEW)])
def test_the_stronger_place_counts_whichever_of_its_names_an_option_has(tmp_path: Path, weak: str, strong: str) -> None:
    def retained(table: HoodieTable, **options: str) -> str | None:
        for number in range(3):
            table.upsert(pa.table({"id": [1], "n": [number], "op": ["I"]}, schema=SCHEMA))
        return table.clean(dry_run=True, options=options).earliest_retained

    quiet = {"hoodie.clean.automatic": "false"}
    kept = _table(tmp_path, {weak: "50", "hoodie.keep.min.commits": "60", "hoodie.keep.max.commits": "70", **quiet}, table_type="cow")
    assert retained(kept) is None
    assert retained(kept, **{strong: "1"}) is not None
    assert retained(HoodieTable.open(kept.path, options={strong: "1"})) is not None
    assert retained(HoodieTable.open(kept.path, options={weak: "1"}), **{strong: "50"}) is None


@pytest.mark.parametrize(("before", "after"), [(_NEW, _OLD), (_OLD, _NEW)])
def test_a_table_keeps_an_option_under_one_of_its_names(tmp_path: Path, before: str, after: str) -> None:
    table = _table(tmp_path, {before: "5"})
    config = set_properties(table.storage, {after: "3"}, lock_timeout_ms=1000)
    assert {key: value for key, value in config.properties.items() if "commits.retained" in key} == {f"lakehouse.default.{after}": "3"}
    config = set_properties(table.storage, {before: None}, lock_timeout_ms=1000)
    assert not [key for key in config.properties if "commits.retained" in key]


def test_an_empty_text_asks_for_no_lock(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.upsert(ROWS, options={"hoodie.write.lock.provider": "", "hoodie.write.lock.filesystem.path": ""})
    assert not ConfigStore(table.storage).read().prefixed("lakehouse.default.hoodie.write.lock")


def test_a_handle_goes_by_what_the_table_keeps_now(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.upsert(ROWS)
    changes = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    }
    set_properties(HoodieTable.open(table.path).storage, changes, lock_timeout_ms=1000)
    table.upsert(pa.table({"id": [1], "n": [2], "op": ["U"]}, schema=SCHEMA))
    assert [entry.operation for entry in table.history()] == ["COMPACT", "UPSERT", "UPSERT"]
    held = HoodieTable.open(table.path)
    set_properties(table.storage, dict.fromkeys(changes), lock_timeout_ms=1000)
    assert (table.clean(dry_run=True).policy, held.clean(dry_run=True).policy) == ("KEEP_LATEST_COMMITS", "KEEP_LATEST_COMMITS")


@pytest.mark.parametrize("key", PARSED)
def test_a_number_is_one_that_can_be_counted_and_waited_for(key: str) -> None:
    default = OPTIONS[key].default
    if not isinstance(default, int) or isinstance(default, bool):
        return
    words = ("bytes", "file.size", "max.size", "file.limit", "size.threshold", "target.io", "group.rows", "max.keys")
    size = any(word in key for word in words)
    if size and not key.startswith("write."):
        assert OPTIONS[key].read({key: 10**17}) == 10**17
        return
    assert OPTIONS[key].read({key: 2**31 - 1}) == 2**31 - 1
    with pytest.raises(OptionError, match=f"{key}='{10**17}' does not parse: expected 2147483647 at most"):
        OPTIONS[key].read({key: 10**17})


@pytest.mark.parametrize("key", ["hoodie.write.lock.wait_time_ms", "hoodie.client.heartbeat.interval_in_ms"])
def test_a_time_that_no_clock_can_wait_for_is_refused_before_it_is_waited_for(tmp_path: Path, key: str) -> None:
    table = _table(tmp_path)
    before = table.state.timeline
    with pytest.raises(OptionError, match=key):
        table.upsert(ROWS, options={key: 10**17})
    with pytest.raises(OptionError, match=key):
        _table(tmp_path / "other", {key: str(10**17)})
    assert HoodieTable.open(table.path).state.timeline == before
