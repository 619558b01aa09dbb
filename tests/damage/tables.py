"""Small tables with a rich past, and what each of their reads answers while they are whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.format.file_names import PARTITION_METAFILE
from lakehouse_engine.format.v8.history import VERSION_FILE
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("note", pa.string())])
OPTIONS = {
    "lakehouse.task.threads": 1,
    "hoodie.clean.automatic": False,
    "hoodie.clean.commits.retained": 1,
    "hoodie.archive.automatic": False,
    "hoodie.compact.inline": False,
    "hoodie.parquet.small.file.limit": 0,
}
VARIANTS = tuple(f"{variant}{end}" for end in ("", "-v9") for variant in ("cow-active", "cow-archived", "mor-active", "mor-archived"))
SAVEPOINT = "s"

Answer = list[tuple[Any, ...]]


def rows(numbers: range, value: int, partition: str = "a") -> pa.Table:
    return pa.Table.from_pylist([{"id": f"{partition}{n}", "p": partition, "v": value, "note": f"n{value}"} for n in numbers], SCHEMA)


@dataclass(frozen=True, slots=True)
class Built:
    """`reads` are the queries that a whole table answers, by name; `answers` what they give."""

    path: Path
    reads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)

    def files(self) -> list[str]:
        """Paths of all files, relative to the table; not the lock, which is no part of it."""
        found = (path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file())
        return sorted(path for path in found if ".locks/" not in path)


def opened(path: Path) -> HoodieTable:
    return HoodieTable.open(str(path), options=OPTIONS)


def answer(path: Path, query: Mapping[str, Any]) -> Answer:
    """Rows in order of keys, each with the commit that wrote it."""
    table = opened(path).to_arrow(columns=["_hoodie_commit_time", *SCHEMA.names], **query)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def build(variant: str, folder: Path) -> Built:
    table_type, age, *later = variant.split("-")
    path, version = folder / variant, TableVersion(int(later[0][1:]) if later else 6)
    create_table(LocalStorage(str(path)), TableSpec(variant, SCHEMA, ["id"], [], ["p"], table_type=table_type, version=version))
    table = opened(path)
    _HISTORIES[table_type](table)
    if age == "archived":
        _archive(table)
    if table_type == "mor":
        table.compact("schedule")
        table.upsert(rows(range(3), 30, "b"))
    else:
        # The savepoint pins what it replaces, so that it could not be archived.
        table.insert_overwrite(rows(range(4), 30, "b"))
    reads = _reads(table)
    return Built(path, reads, {name: answer(path, query) for name, query in reads.items()})


def _archive(table: HoodieTable) -> None:
    """Everything that was written so far, but for what another partition goes on with."""
    written = table.timeline.completed().writes().last()
    value = 20
    while written is not None and table.timeline.contains(written.requested_time):
        table.upsert(rows(range(2), value, "b"))
        if table.config.table_type is TableType.MERGE_ON_READ:
            table.compact()
        table.clean(retain_commits=1)
        table.archive(min_commits=2, max_commits=3)
        value += 1


def _begin(table: HoodieTable) -> None:
    table.insert(rows(range(6), 0, "a"))
    table.insert(rows(range(6), 0, "b"))
    table.upsert(rows(range(3), 1, "a"))
    table.upsert(rows(range(2), 2, "b"))
    table.savepoint(name=SAVEPOINT)


def _copy_on_write(table: HoodieTable) -> None:
    _begin(table)
    table.upsert(rows(range(2, 5), 3, "a"))
    table.delete(pa.table({"id": ["a5"], "p": ["a"]}))
    table.clean(retain_commits=2)


def _merge_on_read(table: HoodieTable) -> None:
    _begin(table)
    table.upsert(rows(range(2, 5), 3, "a"))
    table.compact()
    table.upsert(rows(range(1, 3), 4, "a"))
    table.delete(pa.table({"id": ["b5"], "p": ["b"]}))
    table.clean(retain_commits=2)


_HISTORIES: Mapping[str, Callable[[HoodieTable], None]] = {"cow": _copy_on_write, "mor": _merge_on_read}


def _reads(table: HoodieTable) -> dict[str, dict[str, Any]]:
    """Every kind of read that the table answers: as of an instant that was cleaned it does not."""
    order = table.state.order
    instants = [order.moment(instant.requested_time) for instant in table.timeline.completed().writes()]
    asked: dict[str, dict[str, Any]] = {
        "snapshot": {},
        "read optimized": {"query": "read_optimized"},
        "savepoint": {"as_of": SAVEPOINT},
        "all changes": {"query": "incremental", "begin": "earliest"},
    }
    asked |= {f"as of {time}": {"as_of": time} for time in instants[-3:]}
    asked |= {f"changes since {instants[-2]}": {"query": "incremental", "begin": instants[-2]}}
    return {name: query for name, query in asked.items() if _answers(Path(table.path), query)}


def _answers(path: Path, query: Mapping[str, Any]) -> bool:
    try:
        answer(path, query)
    except LakehouseError:
        return False
    return True


def kind_of(path: str) -> str:
    """Which part of a table a file belongs to."""
    folder, _, name = path.rpartition("/")
    if not folder.startswith(".hoodie"):
        return "metafile" if name == PARTITION_METAFILE else "log" if name.startswith(".") else "base"
    if folder in (".hoodie", ".hoodie/timeline"):
        kinds = {"hoodie.properties": "properties"}
        ends = (".commit", ".deltacommit", ".replacecommit")
        return kinds.get(name) or ("savepoint" if name.endswith(".savepoint") else "commit" if name.endswith(ends) else "timeline")
    if folder == ".hoodie/timeline/history":
        return "archive" if name.endswith(".parquet") else "version" if name == VERSION_FILE else "manifest"
    return "archive" if folder.endswith("archived") else "kept"


def copied(built: Built, folder: Path) -> Built:
    shutil.copytree(built.path, folder)
    return Built(folder, built.reads, built.answers)
