"""What Hudi has and this version has not is refused by its name, on every surface, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.cli.main import cli
from lakehouse_engine.errors import OptionError, UnavailableError, UnknownOptionError, UnsupportedSqlError
from lakehouse_engine.options import check_known
from lakehouse_engine.sql.grammar.statements import Call
from lakehouse_engine.sql.procedures.registry import prepare
from lakehouse_engine.sql.router import route

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA)


def made(tmp_path: Path, **properties: Any) -> HoodieTable:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], properties=properties)
    table.upsert(ROWS)
    return table


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("cluster", {"order_by": ["id"], "layout": "z_order"}), "clustering is not available in this version"),
        (("cluster", {"dry_run": True}), "clustering is not available in this version"),
    ],
)
def test_the_methods_of_a_table_say_so(tmp_path: Path, asked: tuple[str, dict[str, Any]], says: str) -> None:
    table = made(tmp_path)
    before = len(table.timeline)
    with pytest.raises(UnavailableError, match=says):
        getattr(table, asked[0])(**asked[1])
    assert len(HoodieTable.open(table.path).timeline) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cluster", "s.t", "--order-by", "id", "--op", "run", "--dry-run"], "clustering is not available in this version"),
        (["cluster", "s.t"], "clustering is not available in this version"),
    ],
)
def test_the_commands_end_as_refused(tmp_path: Path, arguments: list[str], says: str) -> None:
    made(tmp_path)
    ended = CliRunner().invoke(cli, ["--warehouse", str(tmp_path), *arguments])
    assert (ended.exit_code, says in ended.stderr) == (3, True), ended.output
    ended = CliRunner().invoke(cli, ["--warehouse", str(tmp_path), *arguments, "--json"])
    told = json.loads(ended.stderr)
    assert (told["error"], told["exit_code"], says in told["message"]) == ("UnavailableError", 3, True)


@pytest.mark.parametrize("procedure", ["run_clustering", "Show_Clustering"])
def test_the_procedures_say_so(procedure: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=f"CALL {procedure}: .* in this version"):
        prepare(Call(procedure, (("table", "'s.t'"),), None))


@pytest.mark.parametrize("text", ["optimize s.t", "OPTIMIZE s.t WHERE id > 1 ZORDER BY (id)", "optimize `s`.t zorder by (id, v)"])
def test_optimize_says_so(text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="OPTIMIZE: clustering is not available in this version"):
        route(text, lambda parts: True)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("hoodie.index.type", "RECORD_INDEX", "the record-level index"),
        ("hoodie.index.type", "record_level_index", "the record-level index"),
        ("hoodie.metadata.enable", "true", "the metadata table"),
        ("hoodie.metadata.enable", True, "the metadata table"),
        ("hoodie.metadata.index.column.stats.enable", "true", "the metadata table"),
        ("hoodie.metadata.record.index.enable", "true", "the record-level index"),
        ("hoodie.clustering.inline", "true", "clustering"),
        ("hoodie.clustering.inline.max.commits", "4", "clustering"),
        ("hoodie.table.cdc.enabled", "true", "change data capture"),
    ],
)
def test_the_keys_that_ask_for_it_are_refused_with_the_reason(tmp_path: Path, key: str, value: Any, says: str) -> None:
    with pytest.raises(UnavailableError, match=f"{key}=.*{says}.* not available in this version"):
        made(tmp_path / "new", **{key: value})
    assert not (tmp_path / "new" / "s" / "t").exists()
    table = made(tmp_path)
    before = len(table.timeline)
    with pytest.raises(UnavailableError, match=f"{key}=.*{says}"):
        table.upsert(ROWS, options={key: value})
    assert len(HoodieTable.open(table.path).timeline) == before


def test_keys_that_turn_it_off_are_no_reason_to_refuse_and_are_not_stored(tmp_path: Path) -> None:
    off = {
        "hoodie.metadata.enable": "false",
        "hoodie.clustering.inline": False,
        "hoodie.table.cdc.enabled": "false",
    }
    table = made(tmp_path, **off)
    table.upsert(ROWS, options=off)
    stored = table.config.properties
    assert (stored["hoodie.table.version"], stored["hoodie.table.cdc.enabled"]) == ("6", "false")
    assert [key for key in stored if "metadata.enable" in key or "clustering" in key] == []
    assert check_known(off) == []


def test_a_key_that_is_like_one_of_them_and_none_is_unknown() -> None:
    with pytest.raises(UnknownOptionError):
        check_known({"hoodie.metadataa.enable": "false"})


def test_queries_of_change_data_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="query='cdc': change data capture is not available in this version"):
        made(tmp_path).to_arrow(query="cdc")
