"""Clones: the same rows under another name, and nothing in common with the table that they are of."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import (
    ConstraintError,
    InstantNotFoundError,
    LakehouseError,
    OptionError,
    SavepointError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.services.clone import service
from lakehouse_engine.verify import verify
from lakehouse_engine.write.alter import set_constraints
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import RICH, rich_row

SMALL_FILES = {"hoodie.parquet.small.file.limit": 2000}


def rows(numbers: range, seed: int = 0) -> pa.Table:
    return pa.Table.from_pylist([rich_row(number, seed=seed) for number in numbers], schema=RICH)


@pytest.fixture
def lake(tmp_path: Path) -> Lakehouse:
    return Lakehouse(str(tmp_path / "lake"))


def make(lake: Lakehouse, kind: str = "cow", partition_by: tuple[str, ...] = ("region",)) -> HoodieTable:
    table = lake.create_table(
        "shop.orders",
        schema=RICH,
        record_key=["id"],
        ordering_fields=["ts"],
        partition_by=partition_by,
        table_type=kind,
        properties={"hoodie.index.type": "BLOOM", "hoodie.compact.inline": "false"},
    )
    table.bulk_insert(rows(range(12)), options=SMALL_FILES)
    table.upsert(rows(range(5, 20), seed=1), options=SMALL_FILES)
    table.delete(rows(range(2, 4)))
    return table


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, lake: Lakehouse) -> HoodieTable:
    return make(lake, request.param)


def data_files(table: HoodieTable) -> dict[str, os.stat_result]:
    root = Path(table.path)
    return {str(path.relative_to(root)): path.stat() for path in root.rglob("*") if path.name.endswith(".parquet") or ".log." in path.name}


def digest(table: HoodieTable) -> dict[str, str]:
    files = [path for path in Path(table.path).rglob("*") if path.is_file() and ".locks" not in path.parts]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def no_staged(lake: Lakehouse) -> bool:
    return not any((path / ".staged").is_dir() and any((path / ".staged").iterdir()) for path in Path(lake.warehouse).iterdir())


@pytest.mark.parametrize("partition_by", [("region",), (), ("region", "day")], ids=len)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_clone_reads_as_its_source_here_and_in_hudi_rs(lake: Lakehouse, kind: str, partition_by: tuple[str, ...]) -> None:
    table = make(lake, kind, partition_by)
    expected = table.to_arrow(meta_columns=True)
    result = lake.clone("shop.orders", "copies.orders")
    clone = lake.table("copies.orders")
    # Of rows that logs were merged into, the file's name is the new file's.
    assert_same_rows(clone.to_arrow(meta_columns=True), expected, ignore=["_hoodie_file_name"])
    assert_same_rows(clone.to_arrow(meta_columns=True, query="read_optimized"), expected, ignore=["_hoodie_file_name"])
    assert_same_rows(clone.to_arrow(meta_columns=True, query="incremental"), expected, ignore=["_hoodie_file_name"])
    assert_same_rows(read_with_hudi_rs(clone.path), expected, ignore=["_hoodie_file_name"])
    assert result is not None
    assert (result.inserts, result.files_created) == (expected.num_rows, len(data_files(clone)))
    assert verify(clone.state).findings == ()
    clone.upsert(rows(range(10, 30), seed=9))
    assert_same_rows(read_with_hudi_rs(clone.path), clone.to_arrow(meta_columns=True))


def test_the_one_commit_says_where_from_and_keys_columns_and_options_are_kept(lake: Lakehouse, table: HoodieTable) -> None:
    set_constraints(table.storage, lambda old: Constraints(not_null=("code",)), lock_timeout_ms=0)
    lake.catalog.set_comments(lake.catalog.tables("shop")[0], "all orders", {"code": "of the till"})
    newest = table.history()[0].instant
    lake.clone("shop.orders", "shop.copy")
    clone = lake.table("shop.copy")
    (write,) = clone.timeline.completed().writes()
    told = clone.state.commit_metadata(write).extra_metadata
    assert (told["lakehouse.clone.source"], told["lakehouse.clone.instant"]) == ("shop.orders", newest)
    assert clone.schema == table.schema
    changed = {"hoodie.table.name", "hoodie.table.checksum", "hoodie.table.create.schema"}
    ours, theirs = ({k: v for k, v in one.config.properties.items() if k not in changed} for one in (clone, table))
    assert ours == theirs
    assert clone.config.name == "copy"
    comments = lake.catalog.comments(lake.catalog.tables("shop")[0])
    assert (comments.comment, comments.columns["code"]) == ("all orders", "of the till")
    with pytest.raises(ConstraintError, match="code"):
        clone.insert(pa.Table.from_pylist([rich_row(99, code=None)], schema=RICH))


def test_files_have_a_second_name_where_links_are_asked_for_and_are_others_where_copies_are(lake: Lakehouse) -> None:
    table = make(lake)
    inodes = {status.st_ino for status in data_files(table).values()}
    for files, linked in (("auto", True), ("link", True), ("copy", False)):
        lake.clone("shop.orders", f"shop.{files}_", files=files)
        clone = lake.table(f"shop.{files}_")
        assert data_files(clone)
        assert all((status.st_ino in inodes) is linked for status in data_files(clone).values())
        (write,) = clone.timeline.completed().writes()
        # Each file is of the clone's own instant: none is older than its timeline.
        assert all(name.endswith(f"_{write.requested_time}.parquet") for name in data_files(clone))


@pytest.mark.parametrize("files", ["link", "copy"])
def test_whatever_happens_to_the_source_the_clone_stays(lake: Lakehouse, table: HoodieTable, files: str) -> None:
    lake.clone("shop.orders", "shop.copy", files=files)
    clone = lake.table("shop.copy")
    kept, rows_before = digest(clone), clone.to_arrow(meta_columns=True)
    table.upsert(rows(range(20), seed=5))
    if table.config.table_type.value == "MERGE_ON_READ":
        table.compact()
    table.clean(retain_commits=1)
    table.savepoint(name="here")
    table.insert_overwrite_table(rows(range(3)))
    table.restore("here")
    table.delete_savepoint("here")
    table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    assert digest(clone) == kept
    lake.drop_table("shop.orders")
    assert digest(clone) == kept
    assert_same_rows(HoodieTable.open(clone.path).to_arrow(meta_columns=True), rows_before)
    assert verify(clone.state).findings == ()


@pytest.mark.parametrize("files", ["link", "copy"])
def test_whatever_is_written_to_the_clone_the_source_stays(lake: Lakehouse, table: HoodieTable, files: str) -> None:
    kept = digest(table)
    lake.clone("shop.orders", "shop.copy", files=files)
    clone = lake.table("shop.copy")
    clone.upsert(rows(range(25), seed=5))
    clone.delete(rows(range(7)))
    if table.config.table_type.value == "MERGE_ON_READ":
        clone.compact()
    clone.insert_overwrite_table(rows(range(3)))
    clone.clean(retain_commits=1)
    lake.drop_table("shop.copy")
    assert digest(table) == kept


def test_the_only_commit_of_a_clone_can_be_taken_back_and_takes_nothing_of_the_source(lake: Lakehouse, table: HoodieTable) -> None:
    kept = digest(table)
    lake.clone("shop.orders", "shop.copy")
    clone = lake.table("shop.copy")
    clone.rollback()
    assert (clone.to_arrow().num_rows, digest(table)) == (0, kept)


def test_a_clone_is_of_the_moment_that_was_asked_for(lake: Lakehouse, table: HoodieTable) -> None:
    first, second, third = (instant.requested_time for instant in table.timeline.completed().writes())
    table.savepoint(second, name="before")
    for number, (as_of, instant) in enumerate({first: first, "before": second, "-1": second, "-2": first, third: third}.items()):
        lake.clone("shop.orders", f"shop.at_{number}", as_of=as_of)
        clone = lake.table(f"shop.at_{number}")
        assert_same_rows(clone.to_arrow(), table.to_arrow(as_of=instant))
        (write,) = clone.timeline.completed().writes()
        assert clone.state.commit_metadata(write).extra_metadata["lakehouse.clone.instant"] == instant
    with pytest.raises(InstantNotFoundError, match="no commit as of 2001"):
        lake.clone("shop.orders", "shop.never", as_of="2001-01-01")
    assert not lake.exists("shop.never")
    assert no_staged(lake)


def test_a_table_without_rows_has_a_clone_without_rows(lake: Lakehouse) -> None:
    lake.create_table("shop.orders", schema=RICH, record_key=["id"])
    lake.clone("shop.orders", "shop.copy")
    clone = lake.table("shop.copy")
    assert clone.to_arrow().schema.names == RICH.names
    clone.upsert(rows(range(3)))
    assert clone.to_arrow().num_rows == 3


def test_changes_after_the_clone_are_told_from_what_was_cloned(lake: Lakehouse, table: HoodieTable) -> None:
    newest = table.history()[0].instant
    result = lake.clone("shop.orders", "shop.copy")
    clone = lake.table("shop.copy")
    clone.upsert(rows(range(40, 42)))
    assert result is not None
    # Who has read the source up to there goes on with the clone.
    for begin in (newest, result.instant):
        assert sorted(clone.to_arrow(query="incremental", begin=begin)["id"].to_pylist()) == [40, 41]


def test_what_cannot_be_cloned_is_refused_and_nothing_is_changed(lake: Lakehouse) -> None:
    table = make(lake)
    lake.create_view("shop.seen", "select 1")
    lake.create_table("shop.there", schema=RICH, record_key=["id"]).insert(rows(range(1)))
    (Path(lake.warehouse) / "shop" / "dir" / "within").mkdir(parents=True)
    before = sorted(path for path in Path(lake.warehouse).rglob("*"))
    refused: list[tuple[type[LakehouseError], str, Callable[[], Any]]] = [
        (TableExistsError, "OR REPLACE", lambda: lake.clone("shop.orders", "shop.THERE")),
        (TableExistsError, "as a view", lambda: lake.clone("shop.orders", "shop.seen", or_replace=True)),
        (TableExistsError, "no table", lambda: lake.clone("shop.orders", "shop.dir")),
        (TableNotFoundError, "is a view", lambda: lake.clone("shop.seen", "shop.new")),
        (TableNotFoundError, "not in the warehouse", lambda: lake.clone("shop.nothing", "shop.new")),
        (OptionError, "its own place", lambda: lake.clone("shop.orders", "shop.Orders", or_replace=True)),
        (OptionError, "auto, link, copy", lambda: lake.clone("shop.orders", "shop.new", files="move")),
        (OptionError, "savepoint", lambda: lake.clone("shop.orders", "other.new", as_of="tuesday")),
    ]
    for kind, text, attempt in refused:
        with pytest.raises(kind, match=text):
            attempt()
    after = [path for path in Path(lake.warehouse).rglob("*") if path.name != ".staged"]
    assert sorted(after) == before
    assert lake.clone("shop.orders", "shop.there", if_not_exists=True) is None
    assert lake.table("shop.there").to_arrow().num_rows == 1
    assert table.to_arrow().num_rows == 18


def test_a_table_is_replaced_in_one_step_unless_savepoints_keep_it(lake: Lakehouse, table: HoodieTable) -> None:
    other = lake.create_table("shop.there", schema=pa.schema([("x", pa.int64())]), record_key=["x"])
    other.insert(pa.table({"x": [1]}))
    lake.catalog.set_comments(lake.catalog.tables("shop")[1], "old")
    other.savepoint(name="keep")
    with pytest.raises(SavepointError, match=r"shop\.there has savepoints"):
        lake.clone("shop.orders", "shop.there", or_replace=True)
    assert lake.table("shop.there").to_arrow().num_rows == 1
    other.delete_savepoint("keep")
    lake.clone("shop.orders", "shop.there", or_replace=True)
    assert_same_rows(lake.table("shop.there").to_arrow(), table.to_arrow())
    assert lake.catalog.comments(lake.catalog.tables("shop")[1]).comment is None
    assert no_staged(lake)
    lake.clone("shop.orders", "shop.there", as_of="-1", or_replace=True)
    assert_same_rows(lake.table("shop.there").to_arrow(), table.to_arrow(as_of="-1"))


def test_where_there_are_no_links_files_are_copied_or_the_clone_is_refused(
    lake: Lakehouse, table: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def of_another_file_system(source: str, target: str) -> None:
        if str(source).endswith(".parquet"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        link(source, target)

    monkeypatch.setattr(os, "link", of_another_file_system)
    lake.clone("shop.orders", "shop.copy")
    assert_same_rows(lake.table("shop.copy").to_arrow(), table.to_arrow())
    if table.config.table_type.value == "COPY_ON_WRITE":
        with pytest.raises(StorageError, match="files='copy'"):
            lake.clone("shop.orders", "shop.linked", files="link")
        assert not lake.exists("shop.linked")
        assert no_staged(lake)


def test_a_clean_of_the_source_meanwhile_makes_it_a_clone_of_what_is_there_then(
    lake: Lakehouse, table: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring, told = service.plan_snapshot, []

    def plan(*arguments: Any) -> Any:
        planned = bring(*arguments)
        if not told:
            told.append(1)
            other = HoodieTable.open(table.path)
            other.insert_overwrite_table(rows(range(4), seed=8))
            other.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
        return planned

    monkeypatch.setattr(service, "plan_snapshot", plan)
    lake.clone("shop.orders", "shop.copy")
    assert told
    assert_same_rows(lake.table("shop.copy").to_arrow(), rows(range(4), seed=8))
    assert no_staged(lake)


def test_paths_of_rows_that_others_wrote_are_not_trusted_in_the_clone_either(lake: Lakehouse) -> None:
    table = make(lake)
    (commit, *_) = Path(table.path, ".hoodie").glob("*.commit")
    lake.clone("shop.orders", "shop.ours")
    content = json.loads(commit.read_text())
    del content["extraMetadata"]["lakehouse.writer"]
    commit.write_text(json.dumps(content))
    lake.clone("shop.orders", "shop.theirs")
    assert not lake.table("shop.ours").config.rows_keep_partitions
    assert lake.table("shop.theirs").config.rows_keep_partitions


DIES = """
import os, sys
from lakehouse_engine import Lakehouse
from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.services.clone import service

def die(*arguments, **named):
    os.kill(os.getpid(), 9)

if sys.argv[2] == "files":
    service._Cloning.make_durable = die
else:
    Catalog.put = die
Lakehouse(sys.argv[1]).clone("shop.orders", "shop.copy")
"""


@pytest.mark.parametrize("when", ["files", "name"])
def test_nothing_shows_of_a_clone_that_was_killed_and_the_next_one_removes_it(lake: Lakehouse, table: HoodieTable, when: str) -> None:
    assert subprocess.run([sys.executable, "-c", DIES, lake.warehouse, when], check=False).returncode == -9
    assert not no_staged(lake)
    assert lake.tables() == ["shop.orders"]
    lake.clone("shop.orders", "shop.other")
    assert no_staged(lake)
    lake.clone("shop.orders", "shop.copy")
    assert_same_rows(lake.table("shop.copy").to_arrow(), table.to_arrow())
    lake.drop_schema("shop", cascade=True)
    assert lake.schemas() == []
