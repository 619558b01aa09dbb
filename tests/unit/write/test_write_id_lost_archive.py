"""A `write_id` that may have been in a lost part of the archive is refused, and never written twice."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import CorruptLogError
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify import FindingKind, verify
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
OPTIONS = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.archive.merge.files.batch.size": 100,
}
MERGING = {**OPTIONS, "hoodie.archive.merge.files.batch.size": 3}


def rows(key: int, value: int) -> pa.Table:
    return pa.table({"id": [key], "v": [value]}, schema=SCHEMA)


def opened(folder: Path, options: dict[str, object]) -> HoodieTable:
    return HoodieTable.open(str(folder / "t"), options=options)


def made(folder: Path, options: dict[str, object] = OPTIONS, writes: int = 8) -> HoodieTable:
    """The write of the id "W" is in the first archive file, others are in later ones."""
    create_table(LocalStorage(str(folder / "t")), TableSpec("t", SCHEMA, ["id"]))
    table = opened(folder, options)
    table.bulk_insert(rows(10, 1), write_id="W")
    for value in range(writes):
        table.upsert(rows(1, value))
    return table


def archive(table: HoodieTable) -> list[Path]:
    return sorted(Path(table.path, ".hoodie/archived").glob(".commits*"), key=lambda path: int(path.name.split(".")[3].split("_")[0]))


def with_id(table: HoodieTable) -> Path:
    return next(path for path in archive(table) if b"lakehouse.write.id" in path.read_bytes() and b"W" in path.read_bytes())


def refused(table: HoodieTable, name: str) -> None:
    before = table.to_arrow().num_rows
    with pytest.raises(CorruptLogError, match="accept-lost-archive") as caught:
        table.bulk_insert(rows(10, 1), write_id=name)
    assert ".hoodie/archived/" in caught.value.context["path"]
    assert table.to_arrow().num_rows == before


def accepted(table: HoodieTable) -> None:
    table.repair(accept_lost_archive=True)
    assert not table.bulk_insert(rows(11, 1), write_id="new").was_written
    assert table.bulk_insert(rows(11, 1), write_id="new").was_written
    assert verify(table.state).findings == ()


def test_a_whole_archive_misses_nothing_whether_or_not_its_files_are_merged(tmp_path: Path) -> None:
    for name, options in (("plain", OPTIONS), ("merged", MERGING)):
        (tmp_path / name).mkdir()
        table = made(tmp_path / name, options, 14)
        assert table.state.archived_timeline.lost(table.state.archived_files().counted) == ()
        assert table.bulk_insert(rows(10, 1), write_id="W").was_written
        assert not table.bulk_insert(rows(11, 1), write_id="other").was_written
        assert verify(table.state).findings == ()


@pytest.mark.parametrize("place", [0, 1, -1])
def test_an_archive_file_that_is_gone_is_missed_also_once_more_was_archived_and_until_it_is_back(tmp_path: Path, place: int) -> None:
    table = made(tmp_path)
    gone = archive(table)[place]
    content = gone.read_bytes()
    gone.unlink()
    for _ in range(2):
        refused(opened(tmp_path, OPTIONS), "never")
        findings = verify(opened(tmp_path, OPTIONS).state).findings
        assert [(one.kind, Path(one.path).name) for one in findings] == [(FindingKind.CORRUPT_ARCHIVE, gone.name)]
        for value in range(4):
            opened(tmp_path, OPTIONS).upsert(rows(1, 20 + value))
    assert [Path(one.what).name for one in opened(tmp_path, OPTIONS).repair().repaired] == [gone.name]
    assert verify(opened(tmp_path, OPTIONS).state).findings == ()
    refused(opened(tmp_path, OPTIONS), "never")
    gone.write_bytes(content)
    assert opened(tmp_path, OPTIONS).bulk_insert(rows(10, 1), write_id="W").was_written
    gone.unlink()
    accepted(opened(tmp_path, OPTIONS))


def test_a_file_that_is_gone_is_missed_by_the_merged_one_as_well(tmp_path: Path) -> None:
    table = made(tmp_path)
    gone = archive(table)[1]
    gone.unlink()
    for value in range(8):
        opened(tmp_path, MERGING).upsert(rows(1, 20 + value))
    refused(opened(tmp_path, MERGING), "never")


@pytest.mark.parametrize("kept", [0, 40])
def test_after_a_damaged_archive_file_was_repaired_its_ids_are_refused_until_that_is_put_up_with(tmp_path: Path, kept: int) -> None:
    table = made(tmp_path)
    damaged = with_id(table)
    damaged.write_bytes(damaged.read_bytes()[:kept])
    assert table.repair().repaired
    for value in range(4):
        opened(tmp_path, OPTIONS).upsert(rows(1, 20 + value))
    assert verify(opened(tmp_path, OPTIONS).state).findings == ()
    refused(opened(tmp_path, OPTIONS), "W")
    accepted(opened(tmp_path, OPTIONS))


def test_the_files_of_another_program_are_not_missed(tmp_path: Path) -> None:
    table = made(tmp_path)
    first, second = archive(table)[:2]
    # As a merge of Hudi's leaves them: a newer file without our properties in the place of older ones.
    merged = first.with_name(".commits_.archive.90_1-0-1")
    merged.write_bytes(b"".join(path.read_bytes().replace(b"lakehouse.seal", b"xxxxxxxxx.seal") for path in (first, second)))
    first.unlink()
    second.unlink()
    assert not opened(tmp_path, OPTIONS).bulk_insert(rows(11, 1), write_id="other").was_written
