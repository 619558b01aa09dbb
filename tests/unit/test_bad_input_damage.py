"""Damaged and foreign files: what is legal is no error, and what is lost is told, never read as less rows or written over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import (
    CorruptInstantError,
    FormatError,
    LakehouseError,
    MissingFileError,
    PropertiesError,
    TableNotFoundError,
    UnsupportedTableVersionError,
)
from lakehouse_engine.table import HoodieTable
from tests.support.properties import unsealed
from tests.support.untouched import OPTIONS, files_below, make_table, refused, rows_of

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
Write = Callable[[HoodieTable], object]


def batch(**rows: int) -> pa.Table:
    return pa.table([list(rows), list(rows.values())], schema=SCHEMA)


MERGES: dict[str, Write] = {
    "upsert": lambda table: table.upsert(batch(a=9)),
    "insert": lambda table: table.insert(batch(n=9)),
    "delete": lambda table: table.delete(pa.table({"id": ["a"]})),
}
WRITES: dict[str, Write] = {
    **MERGES,
    "bulk_insert": lambda table: table.bulk_insert(batch(n=9)),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(batch(n=9)),
}


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    made = make_table(tmp_path / "t", SCHEMA)
    made.insert(batch(a=1, b=1))
    made.upsert(batch(a=2))
    return made


def reopened(table: HoodieTable) -> HoodieTable:
    return HoodieTable.open(table.path, options=OPTIONS)


def meta(table: HoodieTable) -> Path:
    return Path(table.path, ".hoodie")


def commits(table: HoodieTable) -> list[Path]:
    return sorted(meta(table).glob("*.commit"))


def values(table: HoodieTable) -> dict[str, int]:
    return {key: row["v"] for key, row in rows_of(table).items()}


def test_empty_requested_and_inflight_files_are_legal(table: HoodieTable) -> None:
    for path in [*meta(table).glob("*.requested"), *meta(table).glob("*.inflight")]:
        path.write_bytes(b"")
    (meta(table) / "20200101000000000.clean.requested").write_bytes(b"")
    (meta(table) / "20200101000000001.replacecommit.requested").write_bytes(b"")
    (meta(table) / "20200101000000001.replacecommit.inflight").write_bytes(b"")
    reopened(table).upsert(batch(c=1))
    assert values(reopened(table)) == {"a": 2, "b": 1, "c": 1}


def test_empty_rollback_plan_does_not_lock_the_table_up(table: HoodieTable) -> None:
    dead = "20200101000000000"
    (meta(table) / f"{dead}.commit.requested").write_bytes(b"")
    (meta(table) / "20200101000000001.rollback.requested").write_bytes(b"")
    reopened(table).upsert(batch(c=1))
    assert values(reopened(table)) == {"a": 2, "b": 1, "c": 1}
    assert not (meta(table) / f"{dead}.commit.requested").exists()


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("write", WRITES)
def test_empty_completed_commit_is_an_error_on_read_and_write(table: HoodieTable, tmp_path: Path, which: int, write: str) -> None:
    whole = commits(table)[which].read_bytes()
    commits(table)[which].write_bytes(b"")
    with pytest.raises(CorruptInstantError):
        reopened(table).to_arrow()
    error = refused(tmp_path, CorruptInstantError, lambda: WRITES[write](reopened(table)))
    assert commits(table)[which].name[:17] in str(error)
    commits(table)[which].write_bytes(whole)
    WRITES[write](reopened(table))


@pytest.mark.parametrize("write", MERGES)
@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
@pytest.mark.parametrize("which", [0, 1])
def test_torn_commit_is_an_error_on_read_and_write(table: HoodieTable, tmp_path: Path, which: int, share: float, write: str) -> None:
    path = commits(table)[which]
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(CorruptInstantError):
        reopened(table).to_arrow()
    refused(tmp_path, CorruptInstantError, lambda: MERGES[write](reopened(table)))
    path.write_bytes(whole)
    MERGES[write](reopened(table))


@pytest.mark.parametrize("write", MERGES)
def test_lost_base_file_is_an_error_that_no_write_buries(table: HoodieTable, tmp_path: Path, write: str) -> None:
    newest = commits(table)[-1].name[:17]
    (lost,) = Path(table.path).glob(f"*{newest}.parquet")
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(MissingFileError, match=newest):
        reopened(table).to_arrow()
    refused(tmp_path, MissingFileError, lambda: MERGES[write](reopened(table)), match=newest)
    lost.write_bytes(content)
    MERGES[write](reopened(table))
    assert values(reopened(table))["b"] == 1


def test_overwriting_the_table_repairs_a_lost_base_file(table: HoodieTable) -> None:
    for path in Path(table.path).glob("*.parquet"):
        path.unlink()
    reopened(table).insert_overwrite_table(batch(z=1))
    assert values(reopened(table)) == {"z": 1}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all, but long enough to look for a footer PAR1"])
def test_broken_base_file_is_a_typed_error(table: HoodieTable, tmp_path: Path, content: bytes) -> None:
    newest = max(Path(table.path).glob("*.parquet"), key=lambda path: path.name[-25:])
    newest.write_bytes(content)
    with pytest.raises(FormatError):
        reopened(table).to_arrow()
    for write in MERGES.values():
        refused(tmp_path, FormatError, lambda write=write: write(reopened(table)))


def test_foreign_files_are_passed_over_and_kept(table: HoodieTable) -> None:
    root = Path(table.path)
    last = max(root.glob("*.parquet"), key=lambda path: path.name[-25:])
    orphan = root / f"{'0' * 8}-0000-0000-0000-{'0' * 12}-0_0-0-0_20990101000000000.parquet"
    names = ["_SUCCESS", "notes.txt", "part-0000.parquet", ".hidden", "x.tmp", "sub/deep.parquet", ".hoodie/readme.md", ".hoodie/1.what"]
    foreign = [root / name for name in names]
    (root / "sub").mkdir()
    for path in foreign:
        path.write_bytes(b"mine")
    orphan.write_bytes(last.read_bytes())
    for write in (lambda: table.upsert(batch(a=3)), lambda: table.insert_overwrite_table(batch(a=4)), lambda: table.upsert(batch(b=1))):
        write()
    assert values(reopened(table)) == {"a": 4, "b": 1}
    assert all(path.read_bytes() == b"mine" for path in foreign)
    assert orphan.exists()


def test_missing_properties_are_no_table_and_nothing_is_made(table: HoodieTable, tmp_path: Path) -> None:
    (meta(table) / "hoodie.properties").unlink()
    refused(tmp_path, TableNotFoundError, lambda: table.upsert(batch(c=1)))
    refused(tmp_path, TableNotFoundError, lambda: reopened(table))


def test_torn_properties_are_read_from_the_backup(table: HoodieTable) -> None:
    path = meta(table) / "hoodie.properties"
    whole = path.read_bytes()
    (meta(table) / "hoodie.properties.backup").write_bytes(whole)
    for torn in (b"", whole[: len(whole) // 2]):
        path.write_bytes(torn)
        assert values(reopened(table)) == {"a": 2, "b": 1}
        reopened(table).upsert(batch(c=1))
        reopened(table).delete(pa.table({"id": ["c"]}))
    path.unlink()
    reopened(table).upsert(batch(c=1))
    assert values(reopened(table)) == {"a": 2, "b": 1, "c": 1}


def test_torn_properties_without_a_backup_are_refused(table: HoodieTable, tmp_path: Path) -> None:
    path = meta(table) / "hoodie.properties"
    whole = path.read_text()
    for text in (whole, unsealed(whole)):
        path.write_text(text.replace("hoodie.table.name=t", "hoodie.table.name=other"))
        refused(tmp_path, PropertiesError, lambda: table.upsert(batch(c=1)), match=r"path=.hoodie/hoodie.properties")


@pytest.mark.parametrize(("version", "layout"), [("5", "1"), ("9", "2"), ("77", "1"), ("six", "1")])
def test_other_table_versions_are_refused(table: HoodieTable, tmp_path: Path, version: str, layout: str) -> None:
    path = meta(table) / "hoodie.properties"
    lines = [line for line in unsealed(path.read_text()).splitlines() if "checksum" not in line]
    changed = {
        "hoodie.table.version=6": f"hoodie.table.version={version}",
        "hoodie.timeline.layout.version=1": f"hoodie.timeline.layout.version={layout}",
    }
    path.write_text("\n".join(changed.get(line, line) for line in lines) + "\n")
    error = UnsupportedTableVersionError if version.isdigit() else LakehouseError
    refused(tmp_path, error, lambda: table.upsert(batch(c=1)))
    refused(tmp_path, error, lambda: reopened(table).to_arrow())


def test_unknown_properties_are_kept(table: HoodieTable) -> None:
    path = meta(table) / "hoodie.properties"
    lines = [line for line in unsealed(path.read_text()).splitlines() if "checksum" not in line]
    path.write_text("\n".join([*lines, "hoodie.future.feature=on", "hoodie.table.metadata.partitions=files"]) + "\n")
    reopened(table).upsert(batch(c=1))
    text = path.read_text()
    assert "hoodie.future.feature=on" in text
    assert "metadata.partitions=files" not in text
    assert files_below(meta(table) / "metadata") == {}
