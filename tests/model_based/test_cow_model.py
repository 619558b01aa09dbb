"""Random histories of copy-on-write tables with rich rows against plain dicts: after each step the table holds what the model holds.

Every sequence is made of its number alone; a failure names it and the steps that led there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.table import HoodieTable
from tests.support.readers import assert_same_rows
from tests.support.table_builder import TableBuilder
from tests.support.table_model import DELETED, Row

SEQUENCES = 60
STEPS = 12
_BLOCK = 20
BLOCKS = [str(first) for first in range(0, SEQUENCES, _BLOCK)]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("a", pa.string()),
        ("b", pa.float64()),
        ("tags", pa.list_(pa.int32())),
        (DELETED, pa.bool_()),
    ]
)


class History:
    """A table of random make, and random steps on it."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.chance, self.done = number, random.Random(number), list[str]()
        chance = self.chance
        partitioned = chance.random() < 0.75
        payload = chance.choice(["overwrite", "event_time", "partial"])
        index = chance.choice(["GLOBAL_SIMPLE", "SIMPLE", "GLOBAL_BLOOM", "BLOOM"])
        options: dict[str, Any] = {
            "hoodie.parquet.small.file.limit": chance.choice([0, 1700, 100_000]),
            "hoodie.parquet.max.file.size": chance.choice([2000, 200_000]),
            "lakehouse.parquet.row.group.rows": chance.choice([2, 500]),
            # Every instant is read again.
            "hoodie.clean.automatic": "false",
        }
        self.built = TableBuilder.create(
            folder / f"t{number}",
            SCHEMA,
            partition_by=["part"] if partitioned else [],
            ordering="ts" if payload != "overwrite" or chance.random() < 0.5 else None,
            hive_style=chance.random() < 0.5,
            index=index,
            payload=payload,
            options=options,
        )
        # Threads cost more than these files of a few rows.
        self.built.table = HoodieTable.open(self.built.table.path, options={"lakehouse.task.threads": 1})
        self.about = f"sequence {number}: partitioned={partitioned}, {payload}, {index}, {options}"

    def row(self, key: int, *, marked: bool = False) -> Row:
        chance = self.chance
        part = chance.choice(["x", "y", "z=1"])
        return {
            "id": key,
            "part": part,
            "ts": chance.choice([None, *range(6)]),
            "a": chance.choice([None, "", "q", "Ω"]),
            "b": chance.choice([None, 0.5, -1.0]),
            "tags": chance.choice([None, [], [1, None]]),
            DELETED: chance.random() < 0.15 if marked else None,
        }

    def known(self) -> list[Row]:
        return [row for _, row in self.built.model.stored.values()]

    def some(self, most: int = 5) -> list[int]:
        return [self.chance.randrange(24) for _ in range(self.chance.randint(0, most))]

    def fresh(self, most: int = 5) -> list[Row]:
        """Rows whose keys are stored nowhere; each key once."""
        stored = {row["id"] for row in self.known()}
        free = [key for key in range(24) if key not in stored]
        return [self.row(key) for key in self.chance.sample(free, min(len(free), self.chance.randint(0, most)))]

    def step(self) -> None:
        built, chance = self.built, self.chance
        steps = ["bulk_insert", "insert", "upsert", "upsert", "upsert_columns", "delete", "insert_overwrite", "insert_overwrite_table"]
        if built.model.partition_fields:
            steps.append("delete_partitions")
        name = chance.choice(steps)
        rows = {
            "upsert": lambda: [self.row(key, marked=True) for key in self.some(8)],
            "upsert_columns": lambda: [self.row(key) for key in self.some()],
            "delete": lambda: [self.row(key) for key in self.some()],
            "insert_overwrite_table": lambda: [self.row(key) for key in sorted(set(self.some()))],
            "insert_overwrite": lambda: self.replacing(),
        }.get(name, self.fresh)()
        self.done.append(f"{name}({rows})")
        if name == "upsert_columns":
            built.upsert(rows, columns=["ts", "a"])
        elif name == "delete_partitions":
            built.delete_partitions([(value,) for value in chance.sample(["x", "y", "z=1"], chance.randint(1, 2))])
        else:
            getattr(built, name)(rows)

    def replacing(self) -> list[Row]:
        """Rows for `insert_overwrite`, whose keys are not in the partitions that stay (keys are not looked up)."""
        model = self.built.model
        rows = [self.row(key) for key in sorted(set(self.some()))]
        replaced = {model.partition_of(row) for row in rows}
        kept = {row["id"] for row in self.known() if model.partition_of(row) not in replaced}
        return [row for row in rows if row["id"] not in kept and model.partition_of(row) in replaced]

    def check_last_step(self) -> None:
        """The snapshot, the last instant, and the chain of changes since a random one."""
        built = self.built
        built.check_snapshot()
        times = ["000", *built.model.snapshots]
        if len(times) > 1:
            begin = self.chance.choice(times[:-1])
            ours = built.table.to_arrow(["_hoodie_commit_time", *SCHEMA.names], query="incremental", begin=begin, end=times[-1])
            assert_same_rows(ours, built.expected(built.model.incremental(begin, times[-1])))


def run(numbers: Sequence[int], folder: Path) -> None:
    for number in numbers:
        history = History(number, folder)
        try:
            for _ in range(STEPS):
                history.step()
                history.check_last_step()
            history.built.check(every_range=False)
        except Exception as error:
            steps = "\n  ".join(history.done)
            raise AssertionError(f"{history.about}\n  {steps}\n{error}") from error


@pytest.mark.parametrize("first", BLOCKS)
def test_random_histories_equal_the_model_after_each_step(first: str, tmp_path: Path) -> None:
    print(f"sequences {first} to {int(first) + _BLOCK - 1}, {STEPS} steps each")
    run(range(int(first), int(first) + _BLOCK), tmp_path)
