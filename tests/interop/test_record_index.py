"""Our writes by the record index, and Hudi's, one after the other: each finds the other's keys where the index says."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.format.hfile.writer import HFileWriter
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.instant import Action
from tests.interop.client import HudiJudge
from tests.support.commit import commit_here
from tests.support.depth import IS_FULL
from tests.support.metadata_checks import check_metadata

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
BY_INDEX = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
OF_HUDI = {
    **BY_INDEX,
    "hoodie.table.name": "t",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.embed.timeline.server": "true",
}


def rows(ids: str, part: str, ts: int) -> pa.Table:
    names = ids.split()
    return pa.table({"id": names, "part": [part] * len(names), "ts": [ts] * len(names), "n": [ts] * len(names)}, schema=SCHEMA)


class Shared:
    """A table of ours with a record index, which Hudi writes, too."""

    def __init__(self, judged: tuple[int, HudiJudge], kind: str, folder: Path) -> None:
        version, self.judge = judged
        properties = {"hoodie.index.type": "RECORD_INDEX", "hoodie.table.version": str(version)}
        made = Lakehouse(str(folder)).create_table(
            "s.t", schema=SCHEMA, record_key=["id"], partition_by=["part"], ordering_fields=["ts"], table_type=kind, properties=properties
        )
        self.path = made.path
        self.options = {**OF_HUDI, "hoodie.datasource.write.table.type": str(made.config.table_type.value)}

    def compactions(self) -> int:
        """How many compactions the timeline of the metadata table has."""
        timeline = MetadataTable.open(self.table.state).state.timeline.completed()
        return sum(one.action is Action.COMMIT for one in timeline)

    @property
    def table(self) -> HoodieTable:
        return HoodieTable.open(self.path)

    def by_hudi(self, given: pa.Table, operation: str = "upsert") -> None:
        self.judge.write(self.path, given, {**self.options, "hoodie.datasource.write.operation": operation})

    def stored(self) -> dict[str, tuple[str, int]]:
        """The rows, by our reader and by Hudi's with the metadata table and without."""
        readings = [self.table.to_arrow()]
        readings += [self.judge.read(self.path, options={"hoodie.metadata.enable": on}) for on in ("true", "false")]
        found = [sorted((row["id"], row["part"], row["n"]) for row in one.to_pylist()) for one in readings]
        assert found[0] == found[1] == found[2]
        assert len({key for key, _, _ in found[0]}) == len(found[0]), "a key is stored twice"
        return {key: (part, n) for key, part, n in found[0]}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_both_write_by_it(judged: tuple[int, HudiJudge], kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shared = Shared(judged, kind, tmp_path)
    by_hudi, stored, table = shared.by_hudi, shared.stored, shared.table
    with caplog.at_level(logging.WARNING):
        table.upsert(rows("a b c", "x", 1))
        table.upsert(rows("b d", "y", 2))
        by_hudi(rows("a d e", "x", 3))
        assert stored() == {"a": ("x", 3), "b": ("y", 2), "c": ("x", 1), "d": ("x", 3), "e": ("x", 3)}
        table.upsert(rows("d e f", "y", 4))
        table.delete(rows("a", "x", 5))
    refused = [record.message for record in caplog.records if "is not asked" in record.message]
    # Hudi counts the row that leaves the partition y as deleted in its log, after which its index may lack keys.
    assert bool(refused) == (kind == "mor")
    assert all("another program deleted rows in logs" in message for message in refused)
    by_hudi(rows("a f", "x", 6))
    by_hudi(rows("c", "x", 7), "delete")
    table.upsert(rows("a b c d e f", "z", 8))
    assert stored() == dict.fromkeys("abcdef", ("z", 8))
    assert shared.judge.judge_metadata(shared.path)["differences"] == []


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_random_turns_leave_what_was_written(judged: tuple[int, HudiJudge], kind: str, tmp_path: Path) -> None:
    """Ours and Hudi's writes, and our services, in an order that rotates with the commit; of Hudi's deletions in logs its own record index
    loses keys.
    """
    shared, model = Shared(judged, kind, tmp_path), dict[str, tuple[str, int]]()
    seed = f"{commit_here()}/{kind}/{judged[0]}"
    dice, done = random.Random(seed), []
    for ts in range(1, 1 + (25 if IS_FULL else 7)):
        kinds = ["ours", "ours", "hudi", "hudi", "ours delete", "services", *(["hudi delete"] if kind == "cow" else [])]
        doing = dice.choice(kinds) if model else "ours"
        part, keys = dice.choice("xyz"), dice.sample("abcdefgh", 3)
        if doing.endswith("delete"):
            part, keys = next(((model[key][0], [key]) for key in keys if key in model), (part, []))
        done.append((doing, part, keys))
        if doing == "services":
            (shared.table.compact if kind == "mor" and dice.random() < 0.5 else shared.table.cluster)()
            shared.table.clean(retain_commits=2)
        elif keys:
            batch = rows(" ".join(keys), part, ts)
            if doing.startswith("hudi"):
                shared.by_hudi(batch, "delete" if doing.endswith("delete") else "upsert")
            elif doing.endswith("delete"):
                shared.table.delete(batch.select(["id", "part"]))
            else:
                shared.table.upsert(batch)
            model = {key: row for key, row in model.items() if key not in keys} | (
                {} if doing.endswith("delete") else dict.fromkeys(keys, (part, ts))
            )
    assert shared.stored() == model, (seed, done)
    assert shared.judge.judge_metadata(shared.path)["differences"] == [], (seed, done)
    assert check_metadata(shared.table.state.storage), (seed, done)


def test_hudi_goes_on_with_an_index_whose_blocks_were_copied(
    judged: tuple[int, HudiJudge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our compactions encode the block of a key and copy the others (ADR 0076); Hudi appends, compacts on top, and we go on."""
    shared, copied = Shared(judged, "cow", tmp_path), list[int]()
    copy = HFileWriter.copy
    monkeypatch.setattr(HFileWriter, "copy", lambda writer, blocks: (copied.append(len(blocks)), copy(writer, blocks)))
    keys = [f"{number:08d}" for number in range(0, 300_000, 25)]
    shared.table.upsert(rows(" ".join(keys), "x", 1))
    shared.table.rebuild_metadata(["record_index"])

    def by_us(numbers: range) -> None:
        for number in numbers:
            given = rows(f"{number * 7_919:08d} {number * 20_000:08d}", "y", 2)
            HoodieTable.open(shared.path, options={"hoodie.metadata.compact.max.delta.commits": 2}).upsert(given)
            keys.extend(set(given["id"].to_pylist()) - set(keys))

    by_us(range(1, 9))
    assert shared.compactions() >= 3
    assert sum(copied) > 20
    assert set(shared.stored()) == set(keys)
    assert shared.judge.judge_metadata(shared.path)["differences"] == []
    before = shared.compactions()
    shared.options["hoodie.metadata.compact.max.delta.commits"] = "1"
    for name in ("00000000", "00150001"):
        shared.by_hudi(rows(name, "z", 3))
        keys.extend({name} - set(keys))
    assert shared.compactions() > before
    copied.clear()
    by_us(range(9, 14))
    assert sum(copied) > 0
    assert set(shared.stored()) == set(keys)
    assert shared.judge.judge_metadata(shared.path)["differences"] == []
    assert check_metadata(shared.table.state.storage)
