"""`python -m benchmarks.planned_files`: requests to open and plan tables in an object store, without and with a metadata table.

The store is in memory (`counted_store`). Files of the large tables are named by a commit
and are no Parquet, since nobody opens them. The rows of the last table are real, and sorted.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.counted_store import requests, use_counted_stores
from lakehouse_engine import HoodieTable
from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
TABLES = ((200, 5), (200, 50), (2000, 1), (2000, 5))
"""Partitions, and files of each."""
_SORTED_FILES, _ROWS = 100, 50
_INDEXES = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}


def main() -> None:
    use_counted_stores()
    print("| table | open, plan | open, plan 100 partitions |\n|---|---|---|")
    for partitions, files in TABLES:
        storage = _named_files(partitions, files)
        some = Query(filters=pc.field("part") < "p00100")
        without = [requests(partial(_planned, storage, query)) for query in (Query(), some)]
        HoodieTable(storage).rebuild_metadata([])
        found = [requests(partial(_planned, storage, query)) for query in (Query(), some)]
        cells = (f"{before} → {after}" for before, after in zip(without, found, strict=True))
        print(f"| {partitions:,} partitions, {partitions * files:,} files | {' | '.join(cells)} |", flush=True)
    print(f"\n| {_SORTED_FILES} sorted files | without | with |\n|---|---|---|")
    for name, condition in (("a key", pc.field("id") == "k02503"), ("a range", (pc.field("n") >= 2500) & (pc.field("n") < 2600))):
        # This process knows footers of tables that it read, so each read gets a table of its own.
        cells = (_read(_sorted_rows(properties), condition) for properties in ({}, _INDEXES))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _planned(storage: ObjectStorage, query: Query) -> int:
    return len(plan_query(TableState.load(storage), query).files)


def _read(storage: ObjectStorage, condition: pc.Expression) -> str:
    made = requests(lambda: HoodieTable(storage).to_arrow(filters=condition))
    return f"{_planned(storage, Query(filters=condition))} files, {made} requests"


def _table(**more: Any) -> ObjectStorage:
    storage = ObjectStorage.at(f"s3://bucket-{uuid.uuid4().hex}/t")
    create_table(storage, TableSpec(name="t", schema=SCHEMA, record_key=["id"], **more))
    return storage


def _sorted_rows(properties: dict[str, str]) -> ObjectStorage:
    storage = _table(partition_by=[], properties=properties)
    table = HoodieTable(storage)
    for number in range(_SORTED_FILES):
        numbers = range(number * _ROWS, (number + 1) * _ROWS)
        columns = {"id": [f"k{one:05d}" for one in numbers], "part": ["p"] * _ROWS, "n": list(numbers)}
        table.bulk_insert(pa.table(columns, schema=SCHEMA))
    return storage


def _named_files(partitions: int, files: int) -> ObjectStorage:
    """A table with a commit that names so many files."""
    storage = _table(partition_by=["part"])
    HoodieTable(storage).bulk_insert(pa.table({"id": ["a"], "part": ["p00000"], "n": [0]}, schema=SCHEMA))
    state = TableState.load(storage)
    first = state.timeline.completed().writes().last()
    assert first is not None
    time = table_clock(state).next(state.timeline)
    stats = {f"part=p{number:05d}": _written(storage, f"part=p{number:05d}", time, files) for number in range(partitions)}
    told = replace(state.commit_metadata(first), partition_to_write_stats=stats)
    for at in (State.REQUESTED, State.INFLIGHT, State.COMPLETED):
        done = at is State.COMPLETED
        shown = table_clock(state).next(state.timeline) if done and state.format.completes_with_time else None
        name = state.format.file_name(Instant(time, Action.COMMIT, at, shown))
        storage.create(f"{state.format.timeline_folder}/{name}", state.format.encode_commit(told) if done else b"")
    return storage


def _written(storage: ObjectStorage, path: str, time: str, files: int) -> tuple[HoodieWriteStat, ...]:
    if storage.head(f"{path}/.hoodie_partition_metadata") is None:
        storage.create(f"{path}/.hoodie_partition_metadata", b"commitTime=0\npartitionDepth=1\n")
    stats = []
    for _ in range(files):
        group = f"{uuid.uuid4()}-0"
        name = f"{path}/{group}_0-0-0_{time}.parquet"
        storage.create(name, b"x" * 20)
        stats.append(HoodieWriteStat(file_id=group, path=name, partition_path=path, prev_commit="null", file_size_in_bytes=20))
    return tuple(stats)


if __name__ == "__main__":
    main()
