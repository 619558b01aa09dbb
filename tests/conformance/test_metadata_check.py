"""`metadata check` on tables that Hudi wrote: nothing is found, until something is changed in one way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

from lakehouse_engine.cli.main import cli
from lakehouse_engine.errors import UnavailableError
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.hfile_block import open_hfile_block, render_hfile_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.format.metadata_table.payload import decode_payloads, encode_payloads
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.plans import HoodieRestoreMetadata
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.verify.metadata_table import MetadataFindingKind, MetadataReport, check_metadata_table
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import EVERY_VERSION, fixtures_root, spark_fixtures, unpack_spark_fixture

ROOT = fixtures_root()
pytestmark = pytest.mark.skipif(ROOT is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")
HUDI = Path("/") if ROOT is None else ROOT / "hudi-spark"
TABLES = [name for name in spark_fixtures(EVERY_VERSION) if "metadata/files/" in (HUDI / f"{name}.timeline.json").read_text()]
PLANTED = ["v6-0.15.0/cow_metadata", "v9-1.2.0/cow_metadata"]


def checked(folder: Path, *, quick: bool = False) -> MetadataReport:
    return check_metadata_table(TableState.load(LocalStorage(str(folder))), quick=quick)


def kinds(report: MetadataReport) -> set[MetadataFindingKind]:
    return {finding.kind for finding in report.findings}


@pytest.mark.parametrize("name", TABLES)
def test_metadata_tables_of_hudi_say_what_is_there(name: str, tmp_path: Path) -> None:
    report = checked(unpack_spark_fixture(name, tmp_path))
    assert report.files > 0
    assert report.skipped == ()
    # Hudi itself loses the key that was deleted in a log and written again (see test_metadata_table_fixtures).
    lost = name.endswith("/mor_metadata")
    assert [(finding.kind, finding.path) for finding in report.findings] == [("key_not_indexed", "part=2024-01-01")] * lost
    assert all("'k0006'" in finding.message for finding in report.findings)


def newest_base_file(folder: Path) -> Path:
    return max(folder.rglob("*.parquet"), key=lambda path: path.name.rpartition("_")[2])


def lose_a_file(folder: Path) -> None:
    newest_base_file(folder).unlink()


def add_bytes(folder: Path) -> None:
    file = newest_base_file(folder)
    file.write_bytes(file.read_bytes() + b"more")


def timeline(folder: Path) -> Path:
    inner = folder / ".hoodie" / "metadata" / ".hoodie"
    return inner / "timeline" if (inner / "timeline").is_dir() else inner


def forget_the_newest_commit(folder: Path) -> None:
    newest = max(path.name for path in timeline(folder).glob("2*.deltacommit"))
    for path in timeline(folder).glob(f"{newest[:17]}*"):
        path.unlink()


def newest_log(folder: Path, group: str) -> Path:
    """The newest log of a group that has records."""
    logs = (folder / ".hoodie" / "metadata").rglob(f".{group}*.log.*")
    filled = [path for path in logs if any(block.type is BlockType.HFILE_DATA for block in read_blocks(path.read_bytes()))]
    return max(filled, key=lambda path: (path.name.split("_")[1], int(path.name.split(".log.")[1].split("_")[0])))


def rewrite(path: Path, change: Callable[[Cells, str], Cells]) -> None:
    """Another HFile block in place of that of a log file, and one without keys behind it, so that the file is no shorter."""
    (block, *_) = [one for one in read_blocks(path.read_bytes()) if one.type is BlockType.HFILE_DATA]
    assert block.instant_time is not None
    assert block.schema is not None
    changed = change(open_hfile_block(block).read_all(), block.schema)
    header: dict[int, str] = {HeaderKey.INSTANT_TIME: block.instant_time, HeaderKey.SCHEMA: " " * path.stat().st_size}
    nothing = render_block(BlockType.DELETE, header, encode_delete_content(pa.array([], pa.string()), pa.array([], pa.string())))
    path.write_bytes(render_hfile_block(block.instant_time, block.schema, changed) + nothing)


def narrow(cells: Cells, schema: str) -> Cells:
    """The same statistics, with the least value for both bounds, and one null more."""
    payloads = decode_payloads(schema, cells.values)
    stats = payloads.column("ColumnStatsMetadata").combine_chunks()
    members = {field.name: stats.field(field.name) for field in stats.type}
    members |= {"maxValue": members["minValue"], "nullCount": pc.add(members["nullCount"], 1)}
    struct = pa.StructArray.from_arrays(list(members.values()), fields=list(stats.type))
    place = payloads.column_names.index("ColumnStatsMetadata")
    return Cells(cells.keys, encode_payloads(schema, payloads.set_column(place, payloads.schema.field(place), struct)))


def narrow_statistics(folder: Path) -> None:
    rewrite(newest_log(folder, "col-stats"), narrow)


def narrow_statistics_of_partitions(folder: Path) -> None:
    rewrite(newest_log(folder, "partition-stats"), narrow)


def swap_filters(folder: Path) -> None:
    def shifted(cells: Cells, schema: str) -> Cells:
        payloads = decode_payloads(schema, cells.values)
        info = payloads.column("BloomFilterMetadata").combine_chunks()
        texts = pc.replace_substring(info.field("bloomFilter").cast(pa.string()), "AAAA", "AAAB", max_replacements=1)
        children = [texts.cast(pa.binary()) if field.name == "bloomFilter" else info.field(field.name) for field in info.type]
        struct = pa.StructArray.from_arrays(children, fields=list(info.type))
        place = payloads.column_names.index("BloomFilterMetadata")
        return Cells(cells.keys, encode_payloads(schema, payloads.set_column(place, payloads.schema.field(place), struct)))

    rewrite(newest_log(folder, "bloom-filters"), shifted)


def rename_indexed_keys(folder: Path) -> None:
    def renamed(cells: Cells, schema: str) -> Cells:
        return Cells(pc.binary_join_element_wise(cells.keys, b"x", b""), cells.values)

    rewrite(newest_log(folder, "record-index"), renamed)


def damage_an_index_file(folder: Path) -> None:
    path = max((folder / ".hoodie" / "metadata" / "record_index").glob("*.hfile"), key=lambda one: one.name.rpartition("_")[2])
    content = path.read_bytes()
    path.write_bytes(content[:60] + bytes(20) + content[80:])


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (lose_a_file, {MetadataFindingKind.LISTED_FILE_IS_GONE}),
        (add_bytes, {MetadataFindingKind.WRONG_SIZE}),
        (forget_the_newest_commit, {MetadataFindingKind.UNKNOWN_INSTANT, MetadataFindingKind.UNLISTED_FILE}),
        (narrow_statistics, {MetadataFindingKind.WRONG_STATISTICS}),
        (swap_filters, {MetadataFindingKind.WRONG_BLOOM_FILTER}),
        (rename_indexed_keys, {MetadataFindingKind.KEY_NOT_INDEXED, MetadataFindingKind.INDEXED_KEY_IS_GONE}),
        (damage_an_index_file, {MetadataFindingKind.UNREADABLE}),
    ],
)
def test_what_is_wrong_is_found(
    name: str, plant: Callable[[Path], None], expected: set[MetadataFindingKind], tmp_path: Path
) -> None:
    folder = unpack_spark_fixture(name, tmp_path)
    plant(folder)
    assert expected <= kinds(checked(folder))


def test_statistics_of_partitions_that_are_too_narrow_are_found(tmp_path: Path) -> None:
    folder = unpack_spark_fixture("v9-1.2.0/cow_metadata", tmp_path)
    narrow_statistics_of_partitions(folder)
    found = {(finding.kind, finding.partition) for finding in checked(folder, quick=True).findings}
    assert found == {("wrong_statistics", "partition_stats")}


def test_a_quick_check_reads_no_rows(tmp_path: Path) -> None:
    report = checked(unpack_spark_fixture("v9-1.2.0/cow_metadata", tmp_path), quick=True)
    assert report.ok
    assert report.keys == 0
    assert report.skipped == ("record_index: rows are not read by a quick check",)


def test_a_table_without_a_metadata_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no metadata table"):
        checked(unpack_spark_fixture("v6-0.15.0/cow_nonpartitioned", tmp_path))


def test_the_command_ends_as_failed_where_something_is_wrong(tmp_path: Path) -> None:
    folder = unpack_spark_fixture("v9-1.2.0/cow_metadata", tmp_path)
    good = CliRunner().invoke(cli, ["metadata", "check", str(folder), "--json"])
    assert good.exit_code == 0
    assert json.loads(good.output)["ok"] is True
    lose_a_file(folder)
    bad = CliRunner().invoke(cli, ["metadata", "check", str(folder), "--quick"])
    assert bad.exit_code == 1
    assert "listed_file_is_gone" in bad.output


def test_a_torn_delta_commit_is_found(tmp_path: Path) -> None:
    folder = unpack_spark_fixture("v9-1.2.0/cow_metadata", tmp_path)
    newest = max(timeline(folder).glob("2*_*.deltacommit"))
    newest.write_bytes(newest.read_bytes()[:40])
    report = checked(folder, quick=True)
    assert kinds(report) == {MetadataFindingKind.UNREADABLE}
    assert {finding.partition for finding in report.findings} >= {"files", "column_stats"}


@pytest.mark.parametrize("name", [one for one in TABLES if one.endswith("/cow_metadata") and one.startswith("v6-")])
def test_a_restore_of_hudi_is_known_by_that_of_the_metadata_table(name: str, tmp_path: Path) -> None:
    """Hudi restores the metadata table by an instant of its own, within that of the data table."""
    folder = unpack_spark_fixture(name, tmp_path)
    outcome = encode_plan(HoodieRestoreMetadata(start_restore_time="20270101000000000", time_taken_in_millis=1, instants_to_rollback=()))
    for suffix, content in (("requested", b""), ("inflight", b""), ("", outcome)):
        (folder / ".hoodie" / f"20270101000000000.restore{'.' if suffix else ''}{suffix}").write_bytes(content)
    assert kinds(checked(folder)) == {MetadataFindingKind.UNKNOWN_INSTANT}
    for state in ("restore.requested", "restore.inflight", "restore"):
        (timeline(folder) / f"20270101000001000.{state}").write_bytes(outcome)
    assert checked(folder).ok
