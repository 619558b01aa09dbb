"""What a compaction copies of the base file: row groups that no log touches, and columns that no log changes. The rows are the model's."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lakehouse_engine.verify.table import verify
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import RICH, TableBuilder, rich_row

DAY = rich_row(0)["day"]


def made(folder: Path, group: int, payload: str = "event_time", index: str = "SIMPLE") -> TableBuilder:
    options = {"lakehouse.parquet.row.group.rows": group, "hoodie.compact.inline": False}
    built = TableBuilder.create(
        folder / "t",
        table_type="mor",
        ordering=None if payload == "overwrite" else "ts",
        payload=payload,
        index=index,
        options=options,
        properties={"lakehouse.parquet.row.group.rows": str(group)},
    )
    built.bulk_insert([rich_row(number, day=DAY) for number in range(150)])
    return built


def compacted(built: TableBuilder) -> None:
    result = built.table.compact()
    if result.instant is not None:  # all that came late may have changed nothing
        built.model.compact(result.instant)
    built.check_snapshot()
    assert_same_rows(read_with_hudi_rs(built.path), built.table.to_arrow(meta_columns=True))
    assert verify(built.table.state).ok


def test_row_groups_and_columns_that_no_log_changes_are_copied(tmp_path: Path, copies: list[frozenset[str]]) -> None:
    built = made(tmp_path, 50)
    built.upsert([{**rich_row(number, day=DAY), "ts": 200, "name": "new"} for number in (51, 70)])
    compacted(built)
    floating = {"real", "wide", "address"}
    everything = {*RICH.names, "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"}
    changed = {"ts", "name", "_hoodie_commit_time", "_hoodie_commit_seqno"}
    assert copies == [everything, everything - changed - floating, everything]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("payload", ["event_time", "overwrite", "partial"])
def test_random_logs_give_what_the_model_has(seed: int, payload: str, tmp_path: Path, copies: list[frozenset[str]]) -> None:
    chance = random.Random(f"{seed}/{payload}")
    built = made(tmp_path, chance.choice([30, 60]), payload, chance.choice(["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"]))
    for step in range(1, 9):
        near = range(12 * step, 12 * step + 9) if chance.random() < 0.6 else chance.sample(range(170), 20)
        kept = chance.sample(RICH.names, chance.randint(0, 5))
        batch = []
        for number in near:
            row, fresh = rich_row(number, day=DAY), rich_row(number, 10 * step, day=DAY)
            batch.append({**row, **{name: fresh[name] for name in kept}, "ts": chance.choice([100 + step, 50])})
        if chance.random() < 0.2:
            built.delete(batch[:5])
        else:
            built.upsert(batch)
        if step % 2 == 0:
            compacted(built)
    assert copies
