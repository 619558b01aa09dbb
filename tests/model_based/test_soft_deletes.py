"""Random histories of tables with soft deletes, events out of order, against a plain dict: what reads show, and what they keep."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.readers import read_with_hudi_rs

DELETED, DELETED_AT = "_hoodie_is_deleted", "_lakehouse_deleted_at"
COLUMNS = [("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string()), (DELETED, pa.bool_())]
SCHEMA = pa.schema(COLUMNS)
KEYS, STEPS = 8, 12
Row = dict[str, Any]


def made(storage: Storage, chance: random.Random, kind: str) -> HoodieTable:
    index = chance.choice(["GLOBAL_SIMPLE", "SIMPLE", "BLOOM", "BUCKET"])
    buckets = {"hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    properties = {"lakehouse.deletes": "soft", "hoodie.index.type": index, **buckets}
    partitions = ["p"] if chance.random() < 0.6 else []
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], partitions, kind, properties=properties))
    options = {
        "lakehouse.write.broadcast.max.bytes": chance.choice([0, 1 << 30]),
        "hoodie.parquet.small.file.limit": chance.choice([0, 10**6]),
        "hoodie.clean.automatic": "false",  # every instant is read at the end
    }
    return HoodieTable(storage, options=options)


class Model:
    """One row a key, deleted or not: the event of the greatest ordering value, and of equal ones the last that came."""

    def __init__(self) -> None:
        self.stored: dict[int, Row] = {}
        self.late = self.back = 0

    def upsert(self, events: list[Row], columns: list[str] | None) -> None:
        newest: dict[int, Row] = {}
        for event in events:
            if event["id"] not in newest or event["ts"] >= newest[event["id"]]["ts"]:
                newest[event["id"]] = event
        for key, event in newest.items():
            old = self.stored.get(key)
            if old is not None and event["ts"] < old["ts"]:
                self.late += bool(old[DELETED] and not event[DELETED])
                continue
            self.back += bool(old is not None and old[DELETED] and not event[DELETED])
            updates = old is not None and not old[DELETED]
            kept = {name: old[name] for name in ("v", "w") if name not in columns} if updates and columns is not None else {}
            self.stored[key] = {**event, **kept}

    def delete(self, keys: list[int]) -> None:
        self.stored = {key: row for key, row in self.stored.items() if key not in keys}

    def rows(self, *, deleted: bool) -> list[tuple[Any, ...]]:
        found = [row for row in self.stored.values() if deleted or not row[DELETED]]
        return sorted((row["id"], row["ts"], row["v"] or "", row["w"] or "", bool(row[DELETED])) for row in found)


def read(table: HoodieTable, *, deleted: bool, **query: Any) -> list[tuple[Any, ...]]:
    found = table.to_arrow(deleted=deleted, **query).to_pylist()
    assert all(not row[DELETED] for row in found)
    return sorted((row["id"], row["ts"], row["v"] or "", row["w"] or "", row.get(DELETED_AT) is not None) for row in found)


def events(chance: random.Random, number: int) -> list[Row]:
    found = []
    for at in range(chance.randrange(1, 7)):
        key, gone = chance.randrange(KEYS), chance.random() < 0.4
        said = (None, None) if gone and chance.random() < 0.5 else (f"v{number}.{at}", f"w{number}.{at}")
        found.append({"id": key, "p": "xy"[key % 2], "ts": chance.randrange(20), "v": said[0], "w": said[1], DELETED: gone})
    return found


def history(storage: Storage, number: int, kind: str) -> tuple[HoodieTable, Model]:
    chance = random.Random(f"{kind} {number}")
    table, model = made(storage, chance, kind), Model()
    seen = dict[str, tuple[list[Any], list[Any]]]()
    for step in range(STEPS):
        what = chance.choices(["upsert", "columns", "delete", "compact"], [6, 2, 1, kind == "mor"])[0]
        if what == "delete":
            keys = chance.sample(range(KEYS), 2)
            table.delete(pa.table({"id": keys, "p": ["xy"[key % 2] for key in keys]}))
            model.delete(keys)
        elif what == "compact":
            table.services.compact()
        else:
            given, columns = events(chance, step), ["v"] if what == "columns" else None
            table.upsert(pa.Table.from_pylist(given, schema=SCHEMA), merge_update_columns=columns)
            model.upsert(given, columns)
        now = model.rows(deleted=False), model.rows(deleted=True)
        assert (read(table, deleted=False), read(table, deleted=True)) == now, (kind, number, step, what)
        if newest := table.timeline.completed().writes().last():
            seen[newest.requested_time] = now
    for instant, (shown, stored) in seen.items():
        assert (read(table, deleted=False, as_of=instant), read(table, deleted=True, as_of=instant)) == (shown, stored)
    return table, model


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_random_histories_with_events_out_of_order_equal_the_model(kind: str) -> None:
    counted = Counter[str]()
    for number in range(12):
        _, model = history(MemoryStorage(), number, kind)
        counted.update(late=model.late, back=model.back)
    assert counted["late"] > 10
    assert counted["back"] > 10


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_rs_reads_every_stored_row_as_an_ordinary_one(tmp_path: Path, kind: str) -> None:
    for number in range(100, 104):
        _, model = history(LocalStorage(str(tmp_path / str(number))), number, kind)
        found = read_with_hudi_rs(tmp_path / str(number)).to_pylist()
        rows = sorted((row["id"], row["ts"], row["v"] or "", row["w"] or "", row[DELETED_AT] is not None) for row in found)
        assert rows == model.rows(deleted=True)
