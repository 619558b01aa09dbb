"""Hudi reads, continues and compacts a metadata table that it made, and that we have compacted, cleaned and archived."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.instant import Action
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from tests.interop.client import HudiJudge
from tests.support.fixtures import fixtures_root, unpack_spark_fixture
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

KINDS = ("cow_metadata", "mor_metadata")
OURS = {
    "hoodie.metadata.compact.max.delta.commits": 4,
    "hoodie.clean.commits.retained": 2,
    "hoodie.keep.min.commits": 4,
    "hoodie.keep.max.commits": 6,
}
THROUGH = {"hoodie.metadata.enable": "true"}
INDEXES = {
    **THROUGH,
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "1",
    "hoodie.embed.timeline.server": "true",
}
"""Hudi drops partitions that its options do not name. Without the timeline server, 1.2 fails to read them back for partition statistics."""


class Written:
    """A table of Hudi's with a metadata table that Hudi and we write in turns."""

    def __init__(self, judge: HudiJudge, fixture: str, folder: Path) -> None:
        self.judge, self.path = judge, unpack_spark_fixture(fixture, folder)
        self.table = HoodieTable.open(str(self.path), options=OURS)
        version = fixture.partition("/")[0][1]
        self.conf = {**INDEXES, "hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
        self.name = self.judge.register(self.path)

    def rows(self, *numbers: int, seed: int = 0) -> pa.Table:
        texts = [f"z{number:04d}" for number in numbers]
        columns = [texts, [f"p{number % 3}" for number in numbers], [10**13 + seed] * len(numbers), texts]
        amounts = [[float(seed)] * len(numbers), pa.array([seed] * len(numbers), pa.int32())]
        return pa.table([*columns, *amounts], names=["id", "part", "ts", "name", "amount", "qty"])

    def write_ourselves(self, commits: int, first: int) -> None:
        for number in range(first, first + commits):
            assert self.table.upsert(self.rows(number, number + 1, seed=number)).failed_services == ()

    def write(self, rows: pa.Table, operation: str = "upsert") -> None:
        options = {
            "hoodie.table.name": self.path.name,
            "hoodie.datasource.write.table.type": str(self.table.config.table_type.value),
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.operation": operation,
            "hoodie.index.type": "RECORD_INDEX",
            **self.conf,
        }
        self.judge.write(self.path, rows, options, conf=self.conf)

    def check(self) -> None:
        """Hudi reads through the metadata table what it reads by listing, and what we read; its files are those of the directories."""
        listed = self.judge.read(self.path, options={"hoodie.metadata.enable": "false"})
        assert_same_rows(self.judge.read(self.path, options=THROUGH), listed)
        ours = HoodieTable.open(str(self.path)).to_arrow()
        assert_same_rows(listed.select(ours.column_names), ours)
        asked = f"select id, qty from {self.name} where id in ('z0101', 'z0104')"
        found = self.judge.sql(f"refresh table {self.name}", asked, conf={**self.conf, "hoodie.enable.data.skipping": "true"})
        assert found is not None
        wanted = ours.filter(pc.is_in(ours["id"], pa.array(["z0101", "z0104"]))).select(["id", "qty"])
        assert wanted.num_rows == 2
        assert_same_rows(found, wanted)
        different = self.judge.call("validate_metadata_table_files", table=self.name, conf=self.conf)
        assert different is None or different.num_rows == 0
        report = check_metadata_table(self.data)
        assert [one for one in report.findings if "'k0006'" not in one.message] == []

    @property
    def data(self) -> TableState:
        return TableState.load(LocalStorage(str(self.path)))

    def done(self, action: Action) -> list[str]:
        return [one.requested_time for one in MetadataTable.open(self.data).state.timeline.completed() if one.action is action]


@pytest.mark.parametrize("kind", KINDS)
def test_hudi_goes_on_with_a_metadata_table_that_we_serve(judged: tuple[int, HudiJudge], kind: str, tmp_path: Path) -> None:
    version, judge = judged
    fixture = f"v{version}-{judge.version}/{kind}"
    shared = Written(judge, fixture, tmp_path)
    partitions = shared.data.config.metadata_partitions
    before = shared.done(Action.COMMIT)
    shared.write_ourselves(12, 100)
    ours = shared.done(Action.COMMIT)
    assert set(ours) - set(before)
    assert shared.done(Action.CLEAN)
    assert MetadataTable.open(shared.data).state.has_archive
    shared.check()
    shared.write(shared.rows(101, 104, 150, seed=900))
    shared.check()
    shared.write(shared.rows(105, seed=901), "delete")
    shared.write(shared.rows(150, 151, seed=902))
    theirs = shared.done(Action.COMMIT)
    assert set(theirs) - set(ours)
    shared.check()
    assert shared.data.config.metadata_partitions == partitions
    shared.write_ourselves(6, 160)
    assert set(shared.done(Action.COMMIT)) - set(theirs)
    shared.check()
    shared.write(shared.rows(161, 170, seed=903))
    shared.check()
