"""Apache Hudi goes on with merge-on-read tables that we began: it merges, compacts, takes back and cleans what we logged, and we what it
logged; all readers agree after each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.interop.client import HudiError, HudiJudge
from tests.interop.shared import NULLS_IN_LISTS, Shared, crashed_copy, rows
from tests.support.delta_history import KINDS, History
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder, rich_row
from tests.support.table_model import Row


def begun(folder: Path, log_format: str) -> TableBuilder:
    """Base files, and logs with updates and deletes on some of them."""
    options = {"hoodie.parquet.small.file.limit": 0, "hoodie.logfile.data.block.format": log_format}
    built = TableBuilder.create(
        folder / "t",
        partition_by=["region"],
        ordering="ts",
        index="SIMPLE",
        table_type="mor",
        options={**options, "hoodie.clean.automatic": False, "hoodie.archive.automatic": False},
    )
    built.bulk_insert(rows(range(12), 0))
    built.insert(rows(range(12, 18), 0))
    built.upsert(rows(range(5, 9), 1))
    built.delete(rows([3, 4], 0))
    return built


def test_hudi_takes_our_logs_through_everything(hudi: HudiJudge, tmp_path: Path) -> None:
    built = begun(tmp_path, "parquet" if hudi.version == "0.15.0" else "avro")
    shared = Shared(built, hudi, conf=NULLS_IN_LISTS)
    ours = shared.newest()
    shared.hudi.savepoint(ours)
    shared.upsert(rows(range(7, 22), 2))
    shared.delete(rows([0, 5, 14, 21], 2))
    shared.check()
    shared.check_incremental(ours)
    shared.compact()
    shared.check()

    # Logs of both on one slice; each rolls forward what the other planned.
    built.upsert(rows(range(6, 16), 3))
    built.delete(rows([1, 17], 3))
    shared.upsert(rows(range(1, 9), 4))
    shared.check()
    shared.compact("schedule")
    built.upsert(rows(range(4, 12), 5))
    shared.check(hudi_rs=False)
    shared.compact_ourselves("run")
    shared.check()
    shared.upsert(rows(range(8, 14), 6))
    shared.compact_ourselves("schedule")
    shared.delete(rows([8, 9], 6))
    built.upsert(rows([8, 10, 11], 7))
    shared.check(hudi_rs=False)
    shared.compact("run")
    shared.check()

    shared.upsert(rows(range(10, 20), 8))
    built.upsert(rows(range(0, 30, 4), 9))
    shared.rollback()
    shared.check()
    shared.hudi.clean(2)
    assert len(shared.hudi.instants("clean")) == 1
    shared.check()

    if hudi.version == "1.2.0":
        # It takes instants back in order of completion, stops where a compaction completed after later delta commits, and leaves the
        # restore pending, so that it cannot write any more.
        with pytest.raises(HudiError, match="Found commits after time"):
            shared.restore(ours)
        assert built.table.repair().repaired
        built.model.go_back(ours)
    else:
        shared.restore(ours)
    shared.check()
    shared.hudi.delete_savepoint(ours)
    built.upsert(rows(range(2, 8), 10))
    built.delete(rows([9, 15], 10))
    shared.check()
    shared.upsert(rows(range(4, 14), 11))
    shared.check()
    shared.check_incremental(ours)
    shared.compact_ourselves()
    shared.check()


def test_hudi_keeps_a_metadata_table_beside_our_logs(hudi: HudiJudge, tmp_path: Path) -> None:
    built = begun(tmp_path, "parquet")
    shared = Shared(built, hudi, conf=NULLS_IN_LISTS, index="BLOOM", metadata_table=True)
    shared.upsert(rows(range(7, 22), 2))
    shared.compact()
    shared.delete(rows([0, 14], 2))
    shared.check()
    assert shared.has_metadata_table()
    built.upsert(rows(range(5, 15), 3))
    assert shared.has_metadata_table()
    shared.check()
    shared.upsert(rows(range(10, 24), 4))
    shared.check()


TAKEN_IN_TURNS = ["nonpartitioned_avro", "complex_one_key_plain", "nonpartitioned_two_keys", "overwrite_with_ordering", "evolved"]
"""Kinds that differ in more than one way from the table that goes through everything. Tables with buckets have tests of their own."""


@pytest.mark.parametrize("name", TAKEN_IN_TURNS)
def test_turns_are_taken_on_every_kind_of_table(hudi: HudiJudge, name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    built = kind.create(tmp_path, "t")
    built.bulk_insert(rows(range(10), 0))
    if kind.evolves:
        built.upsert(rows(range(4), 0))
        History(built).evolve()
    built.upsert(rows(range(5, 14), 1))
    # Hudi is told nothing of an index and takes its own default.
    shared = Shared(built, hudi, kind.partitions, index=None, conf=NULLS_IN_LISTS)
    shared.upsert(rows(range(8, 18), 2))
    shared.delete(rows([1, 9, 15], 2))
    built.upsert(rows(range(0, 20, 3), 3))
    built.delete(rows([2, 3], 3))
    shared.check()
    shared.compact()
    built.upsert(rows(range(4, 10), 4))
    shared.check()


def test_hudi_rolls_back_what_our_killed_writer_logged(hudi: HudiJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = begun(tmp_path / "first", "parquet")
    target = tmp_path / "t"
    batch: Sequence[Row] = [*rows(range(4, 8), 2), rich_row(50, region="new")]
    dead = crashed_copy(built, lambda: built.upsert(batch), target, monkeypatch)
    temp = target / ".hoodie" / ".temp" / dead
    marked = {str(marker.relative_to(temp)).rpartition(".marker.")[::2] for marker in temp.rglob("*.marker.*")}
    assert {kind for _, kind in marked} == {"APPEND", "CREATE"}
    assert all((target / path).is_file() for path, _ in marked)

    survivor = TableBuilder(type(built.table).open(str(target)), built.model, built.schema, built.options)
    shared = Shared(survivor, hudi, conf=NULLS_IN_LISTS, index="SIMPLE")
    shared.check()
    shared.upsert(rows(range(6, 11), 3))
    # Hudi leaves the log file, and takes it back by a block behind it.
    assert not any((target / path).exists() for path, kind in marked if kind == "CREATE")
    assert not list((target / ".hoodie").glob(f"{dead}*"))
    assert len(shared.hudi.instants("rollback")) == 1
    if hudi.version == "0.15.0":
        # It rolled back after it had begun its own write, and until the next one its reads stop at the block that says so.
        assert_same_rows(read_with_hudi_rs(target), survivor.check_snapshot())
    else:
        shared.check()
    survivor.upsert(rows(range(4, 8), 4))
    shared.check()
    shared.compact()
    shared.check()
