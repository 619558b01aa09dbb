"""Indexes by name: listed, created with their columns, dropped, and refused where only Hudi builds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from lakehouse_engine.cli.main import cli
from lakehouse_engine.errors import CommitConflictError, OptionError, UnavailableError
from lakehouse_engine.format.metadata_table.keys import split_secondary_keys
from lakehouse_engine.metadata_table.answers import record_keys_of
from lakehouse_engine.metadata_table.building import entries
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.services import IndexChange
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.services.metadata import indexes as service
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.alter import evolve_schema
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.string()), ("tags", pa.list_(pa.string()))])
META = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")


def rows(*ids: int) -> pa.Table:
    columns = {"id": list(ids), "p": [f"p{one % 2}" for one in ids], "v": [f"v{one % 3}" for one in ids], "tags": [["a"]] * len(ids)}
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["p"], table_type="mor", version=TableVersion(request.param))
    create_table(LocalStorage(str(tmp_path / "t")), spec)
    made = HoodieTable.open(str(tmp_path / "t"), options={"hoodie.write.lock.wait_time_ms": 500})
    made.insert(rows(1, 2, 3))
    made.upsert(rows(3, 4))
    return made


def create(table: HoodieTable, name: str, **arguments: Any) -> IndexChange:
    return service.create(table.storage, name, lock_timeout_ms=500, **arguments)


def drop(table: HoodieTable, name: str, **arguments: Any) -> IndexChange:
    return service.drop(table.storage, name, lock_timeout_ms=500, **arguments)


def listed(table: HoodieTable) -> dict[str, tuple[str, tuple[str, ...], str]]:
    return {one.name: (one.type, one.columns, one.partition) for one in service.indexes(table.state)}


def test_indexes_are_created_listed_kept_up_and_dropped(table: HoodieTable) -> None:
    assert listed(table) == {}
    assert create(table, "record_index", columns=["id"], kind="record_index").built == ("files", "record_index")
    assert create(table, "bloom_filters").built == ("bloom_filters",)
    assert create(table, "column_stats").built == ("column_stats",)
    found = listed(table)
    assert found["record_index"] == ("record_index", ("id",), "record_index")
    assert found["bloom_filters"] == ("bloom_filters", ("id",), "bloom_filters")
    assert {"id", "p", "v", *META} <= set(found["column_stats"][1])
    table.upsert(rows(4, 5))
    assert check_metadata_table(TableState.load(table.storage)).findings == ()
    assert drop(table, "bloom_filters").dropped == ("bloom_filters",)
    assert set(listed(table)) == {"record_index", "column_stats"}


def test_statistics_are_of_the_named_columns_and_no_others(table: HoodieTable) -> None:
    if int(table.config.version) == 6:
        with pytest.raises(OptionError, match="version 6, in which column_stats has every column"):
            create(table, "column_stats", columns=["v"])
        assert listed(table) == {}
        return
    create(table, "column_stats", columns=["v"])
    assert listed(table)["column_stats"][1] == (*META, "v")
    stored = json.loads(Path(table.path, ".hoodie/.index_defs/index.json").read_text(encoding="utf-8"))["indexDefinitions"]["column_stats"]
    assert (stored["sourceFields"], stored["version"]) == ([*META, "v"], "V2")
    table.upsert(rows(4, 5))
    assert check_metadata_table(TableState.load(table.storage)).findings == ()
    drop(table, "column_stats")
    create(table, "column_stats", columns=["id", "v"])
    assert listed(table)["column_stats"][1] == (*META, "id", "v")


@pytest.mark.parametrize(
    ("name", "arguments", "error", "words"),
    [
        ("keys", {"kind": "record_index"}, OptionError, "one record_index, which Hudi calls record_index"),
        ("record_index", {"kind": "column_stats"}, OptionError, "the one index of that type"),
        ("record_index", {"columns": ["v"]}, OptionError, "is about the record key, id"),
        ("record_index", {"kind": "secondary_index"}, OptionError, "the one index of that type"),
        ("low", {"kind": "expr_index", "columns": ["v"]}, OptionError, "an index on an expression, and none is given"),
        ("low", {"kind": "bloom_filters", "columns": ["v"]}, UnavailableError, "low of t: writers of Hudi fail in a merge-on-read table"),
        ("low", {"kind": "lucene"}, OptionError, "no type of index; there are record_index"),
    ],
)
def test_what_does_not_fit_is_refused_with_nothing_changed(
    table: HoodieTable, name: str, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    before = TableState.load(table.storage).config
    if error is UnavailableError and int(before.version) == 6:
        error, words = OptionError, "expression indexes are for table versions 8 and 9"
    with pytest.raises(error, match=words):
        create(table, name, **arguments)
    assert TableState.load(table.storage).config == before
    assert not Path(table.path, ".hoodie/metadata").exists()


@pytest.mark.parametrize(("column", "words"), [("none", "no top-level column 'none'"), ("tags", "tags of t has a type without statistics")])
def test_a_column_that_can_have_no_statistics_is_refused(tmp_path: Path, column: str, words: str) -> None:
    create_table(LocalStorage(str(tmp_path)), TableSpec("t", SCHEMA, ["id"], version=TableVersion.NINE))
    with pytest.raises(OptionError, match=words):
        service.create(LocalStorage(str(tmp_path)), "column_stats", columns=["v", column], lock_timeout_ms=500)


def test_a_name_is_taken_once_and_dropped_once(table: HoodieTable) -> None:
    create(table, "record_index")
    with pytest.raises(OptionError, match="has an index record_index already"):
        create(table, "record_index")
    assert create(table, "record_index", if_not_exists=True).built == ()
    drop(table, "record_index")
    with pytest.raises(OptionError, match="no index 'record_index' to drop; it has none"):
        drop(table, "record_index")
    with pytest.raises(OptionError, match="no index 'files'"):
        drop(table, "files")
    assert drop(table, "record_index", if_exists=True).dropped == ()


def test_nothing_is_defined_while_a_plan_is_pending(table: HoodieTable) -> None:
    planned = table.compact("schedule").instant
    assert planned is not None
    columns = None if int(table.config.version) == 6 else ["v"]
    with pytest.raises(CommitConflictError, match=planned):
        create(table, "column_stats", columns=columns)
    assert not Path(table.path, ".hoodie/.index_defs").exists()


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["index", *arguments])
    return result.exit_code, result.output


def test_a_dry_run_says_what_would_be_done_and_does_nothing(table: HoodieTable) -> None:
    before = TableState.load(table.storage).config
    assert table.create_index("record_index", dry_run=True).built == ("files", "record_index")
    assert TableState.load(table.storage).config == before
    assert table.create_index("record_index", type="record_index").built == ("files", "record_index")
    assert table.drop_index("record_index", dry_run=True).dropped == ("record_index",)
    assert [one.name for one in table.indexes()] == ["record_index"]


def test_the_command_line_creates_lists_and_drops(table: HoodieTable) -> None:
    code, text = run("create", table.path, "record_index", "--columns", "id", "--json")
    assert (code, json.loads(text)["built"]) == (0, ["files", "record_index"])
    assert run("create", table.path, "record_index")[0] == 2
    assert run("create", table.path, "record_index", "--if-not-exists")[0] == 0
    assert run("create", table.path, "column_stats", "--columns", ",")[0] == 2
    code, text = run("list", table.path, "--json")
    listed_one = {"name": "record_index", "type": "record_index", "columns": ["id"], "partition": "record_index"}
    assert (code, json.loads(text)) == (0, [{**listed_one, "stored_as": "", "options": {}, "planned": None}])
    if int(table.config.version) > 6:
        asked = ("--columns", "v", "--expression", "substring", "--with", "pos=1", "--with", "len=2", "--json")
        assert json.loads(run("create", table.path, "sub", *asked)[1])["built"] == ["expr_index_sub"]
        shown = {one["name"]: one for one in json.loads(run("list", table.path, "--json")[1])}["sub"]
        assert (shown["stored_as"], shown["options"]) == ("column_stats", {"expr": "substring", "pos": "1", "len": "2"})
        assert '{"expr": "substring", "pos": "1", "len": "2"}' in run("list", table.path)[1]
        assert run("create", table.path, "other", "--columns", "v", "--with", "pos")[0] == 2
        assert run("drop", table.path, "sub")[0] == 0
    assert run("drop", table.path, "record_index")[0] == 0
    assert run("drop", table.path, "record_index")[0] == 2
    assert run("drop", table.path, "record_index", "--if-exists")[0] == 0
    assert table.indexes() == []


def keys_of(table: HoodieTable, name: str, *values: str | None) -> dict[str | None, set[str]]:
    found: dict[str | None, set[str]] = {value: set() for value in values}
    for row in record_keys_of(MetadataTable.open(TableState.load(table.storage)), f"secondary_index_{name}", values).to_pylist():
        found[row["value"]].add(row["key"])
    return found


@pytest.mark.parametrize("version", [8, 9])
def test_a_secondary_index_is_built_with_the_record_index_and_follows_writes(tmp_path: Path, version: int) -> None:
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["p"], table_type="mor", version=TableVersion(version))
    create_table(LocalStorage(str(tmp_path)), spec)
    table = HoodieTable.open(str(tmp_path))
    table.insert(rows(1, 2, 3, 4))
    table.upsert(rows(5).set_column(2, "v", pa.array([None], pa.string())))
    table.upsert(rows(4).set_column(2, "v", pa.array(["a$\\b"])))
    assert table.create_index("by_v", columns=["v"]).built == ("files", "record_index", "secondary_index_by_v")
    assert listed(table)["by_v"] == ("secondary_index", ("v",), "secondary_index_by_v")
    asked = ("v0", "v1", "v2", "a$\\b", None)
    assert keys_of(table, "by_v", *asked) == {"v0": {"3"}, "v1": {"1"}, "v2": {"2"}, "a$\\b": {"4"}, None: {"5"}}
    table.upsert(rows(4, 6))
    table.delete(rows(3))
    changed = {"v0": {"6"}, "v1": {"1", "4"}, "v2": {"2"}, "a$\\b": set(), None: {"5"}}
    assert keys_of(table, "by_v", *asked) == changed
    assert {"by_v", "record_index"} == set(listed(table))
    for partitions in (None, ["secondary_index_by_v"]):
        assert "secondary_index_by_v" in table.rebuild_metadata(partitions).built
        assert keys_of(table, "by_v", *asked) == changed
    assert check_metadata_table(TableState.load(table.storage)).findings == ()
    with pytest.raises(OptionError, match="by_v needs the record index"):
        table.drop_index("record_index")
    with pytest.raises(OptionError, match="by_v needs the record index"):
        table.drop_metadata(["record_index"])
    assert table.drop_index("by_v").dropped == ("secondary_index_by_v",)
    assert table.create_index("by_id", columns=["id"], type="secondary_index").built == ("secondary_index_by_id",)
    assert keys_of(table, "by_id", "6", "3") == {"6": {"6"}, "3": set()}


@pytest.mark.parametrize("partitions", [None, ["column_stats"]])
def test_a_rebuild_keeps_the_chosen_columns(tmp_path: Path, partitions: list[str] | None) -> None:
    create_table(LocalStorage(str(tmp_path)), TableSpec("t", SCHEMA, ["id"], partition_by=["p"], version=TableVersion.NINE))
    table = HoodieTable.open(str(tmp_path))
    table.insert(rows(1, 2))
    table.create_index("column_stats", columns=["v"])
    before = listed(table)["column_stats"]
    assert before[1][-1] == "v"
    table.rebuild_metadata(partitions)
    assert listed(table)["column_stats"] == before


def test_a_rebuild_chooses_default_columns_anew(tmp_path: Path) -> None:
    create_table(LocalStorage(str(tmp_path)), TableSpec("t", SCHEMA, ["id"], partition_by=["p"], version=TableVersion.NINE))
    table = HoodieTable.open(str(tmp_path))
    table.insert(rows(1, 2))
    table.create_index("column_stats")
    before = listed(table)["column_stats"][1]
    evolve_schema(table.storage, SCHEMA.append(pa.field("z", pa.int64())), lock_timeout_ms=1000)
    table.rebuild_metadata(["column_stats"])
    assert listed(table)["column_stats"][1] == (*before, "z")


def test_a_secondary_index_on_many_groups_is_routed_as_its_version_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change finds the entries of the build in their group; entries of one value are in one group from version 9 on."""
    monkeypatch.setattr(entries, "record_index_groups", lambda count: 5)
    for version in (8, 9):
        storage = LocalStorage(str(tmp_path / str(version)))
        create_table(storage, TableSpec("t", SCHEMA, ["id"], version=TableVersion(version)))
        table = HoodieTable.open(storage.root)
        table.insert(rows(*range(1, 31)))
        table.create_index("by_v", columns=["v"])
        opened = MetadataTable.open(TableState.load(storage))
        pieces = opened.groups("secondary_index_by_v")
        assert [piece.file_id for piece in pieces] == [f"secondary-index-by-v-000{number}-0" for number in range(5)]
        values = [set(split_secondary_keys(opened.newest(piece, "secondary_index_by_v").keys)[0].to_pylist()) for piece in pieces]
        assert (sum(map(len, values)) == 3) is (version == 9), values
        table.delete(rows(*range(1, 30)))
        assert keys_of(table, "by_v", "v0", "v1", "v2") == {"v0": {"30"}, "v1": set(), "v2": set()}


@pytest.mark.parametrize(
    ("version", "name", "arguments", "error", "words"),
    [
        (6, "by_v", {"columns": ["v"]}, OptionError, "versions 8 and 9; t has version 6"),
        (9, "by_v", {}, OptionError, "about one column"),
        (9, "by_v", {"columns": ["v", "id"]}, OptionError, "is given 2"),
        (9, "by_v", {"columns": ["none"]}, OptionError, "no top-level column 'none'"),
        (9, "../v", {"columns": ["v"]}, OptionError, "cannot be the name of an index"),
        (9, "by_tags", {"columns": ["tags"]}, UnavailableError, "texts or signed whole numbers, not on tags"),
    ],
)
def test_a_secondary_index_that_cannot_be_is_refused(
    tmp_path: Path, version: int, name: str, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    create_table(LocalStorage(str(tmp_path)), TableSpec("t", SCHEMA, ["id"], version=TableVersion(version)))
    with pytest.raises(error, match=words):
        service.create(LocalStorage(str(tmp_path)), name, lock_timeout_ms=500, **arguments)
    assert not Path(tmp_path, ".hoodie/metadata").exists()
    assert not Path(tmp_path, ".hoodie/.index_defs").exists()
