"""One kind of table: made by a Hudi, read and continued by us, read back by both Hudis, continued by its maker.

What is right is Hudi's own word: the maker goes on with a copy of the table by the same batches, and the two copies must agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify import verify
from tests.interop.client import HudiError, HudiJudge, Query, copy_table
from tests.interop.zoo.kind import Kind, Property, Sql, Step
from tests.support.readers import META_COLUMNS, PARTITION_PATH, RECORD_KEY, assert_same_rows
from tests.support.untouched import files_below

OURS = {"lakehouse.task.threads": 1}
KEY_COLUMNS = (RECORD_KEY, PARTITION_PATH)
BY_WRITER = [name for name in META_COLUMNS if name not in KEY_COLUMNS]
"""Meta columns that differ between two writers of the same rows."""
INSTANT = re.compile(r"^(\d{17})\.(commit|deltacommit|replacecommit)$")


class Visit:
    """The way of one table through the hands of all."""

    def __init__(self, kind: Kind, maker: HudiJudge, other: HudiJudge, folder: Path) -> None:
        self.kind, self.maker, self.other = kind, maker, other
        self.path = folder / "t"
        self.control = folder / "control" / "t"
        self.logged = folder / "logged" / "t"

    def make(self) -> None:
        for step in self.kind.steps:
            self._take(step)

    def check_reads(self) -> None:
        """Every kind of query gives what Hudi gives, meta columns included."""
        left_out = self.kind.skip.get(self.maker.version, {})
        asked = {name: query for name, query in queries(self.path).items() if name not in left_out}
        theirs = dict(zip(asked, self.maker.read_many([(self.path, q) for q in asked.values()], conf=self.kind.conf), strict=True))
        for name, query in asked.items():
            ignored = [*self.kind.ignore.get(name, ()), *self.kind.ignore.get("every", ())]
            assert_same_rows(our_reading(self.path, query), theirs[name], ignore=ignored, what=f"{name} query")

    def check_refused(self) -> None:
        """Reads or writes end in the expected error, and no file is touched."""
        outcome = self.kind.outcome(self.maker.version)
        before = files_below(self.path)
        if outcome.read:
            self.check_reads()
        else:
            with pytest.raises(LakehouseError, match=outcome.refused):
                our_reading(self.path, Query())
        accepted = {"insert": outcome.inserted, "delete": outcome.deleted}
        writes = ["insert"] if self.kind.inserts_only else [one for one in ("upsert", "delete", "insert") if not accepted.get(one)]
        for write in writes:
            with pytest.raises(LakehouseError, match=outcome.refused):
                getattr(self._ours(), write)(self._batch(range(2, 13), 3))
        after = files_below(self.path)
        assert sorted(after) == sorted(before)
        assert after == before

    def go_on(self) -> None:
        """Known and new keys, deletions and a compaction by us; both Hudis read that; then the maker goes on."""
        copy_table(self.path, self.control)
        operation = "insert" if self.kind.inserts_only else "upsert"
        batch = self._batch(range(2, 13), 3)
        getattr(self._ours(), operation)(batch)
        self._hudi_writes(self.control, batch, operation)
        gone = self._batch([3, 6, 12, 99] if self.kind.deletes else [], 4)
        if self.kind.deletes:
            self._ours().delete(gone)
        copy_table(self.path, self.logged)
        compacted = self._compact()
        self._check_continued(gone, compacted)
        self._maker_goes_on(self._batch([0, 5, 6, 11, 20, 21], 5), operation)
        report = verify(self._ours().state)
        assert report.ok, report.findings

    def _check_continued(self, gone: pa.Table, compacted: bool) -> None:
        """What both Hudis read of what we wrote, before and after our compaction, is what the maker wrote, and what we read."""
        states = {"logged": self.logged, "compacted": self.path} if compacted else {"written": self.path}
        control, *theirs = self.maker.read_many([(path, Query()) for path in (self.control, *states.values())], conf=self.kind.conf)
        expected = _without(control, gone, self.kind.key)
        # The key that a writer generates is its own.
        differ = [*BY_WRITER, *([RECORD_KEY] if self.kind.inserts_only else []), *self.kind.hidden.get(self.maker.version, ())]
        for (moment, path), seen in zip(states.items(), theirs, strict=True):
            self._check_ours(path, seen, f"{moment} by us, read by {self.maker.version}")
            assert_same_rows(seen, expected, ignore=differ, what=f"{moment} by us (actual), by {self.maker.version} (expected)")
        self._read_back_by_the_other(states)

    def _check_ours(self, path: Path, seen: pa.Table, what: str) -> None:
        ours = our_reading(path, Query())
        ignored = [*self.kind.ignore.get("snapshot", ()), *self.kind.ignore.get("every", ())]
        assert_same_rows(ours, seen, ignore=ignored, what=f"{what}, beside our reading (actual)")
        if RECORD_KEY in ours.column_names and ours.num_rows:
            # A table with `hoodie.populate.meta.fields=false` shows no keys.
            named = self.kind.key if ours.column(RECORD_KEY).null_count else KEY_COLUMNS
            counts = ours.group_by(list(named)).aggregate([([], "count_all")])
            assert pc.max(counts.column("count_all")).as_py() == 1, f"{what}: a key is there twice"

    def _read_back_by_the_other(self, states: Mapping[str, Path]) -> None:
        if self.maker.version in self.kind.alone:
            with pytest.raises(HudiError):
                self.other.read(self.control)
            return
        read = self.other.read_many([(path, Query()) for path in states.values()], conf=self.kind.conf)
        for (moment, path), seen in zip(states.items(), read, strict=True):
            self._check_ours(path, seen, f"{moment} by us, read by {self.other.version}")

    def _maker_goes_on(self, batch: pa.Table, operation: str) -> None:
        before = our_reading(self.path, Query())
        self._hudi_writes(self.path, batch, operation)
        after = self.maker.read(self.path, conf=self.kind.conf)
        self._check_ours(self.path, after, f"continued by {self.maker.version}")
        if self.kind.inserts_only:
            assert after.num_rows == before.num_rows + batch.num_rows
            return
        ignored = [*BY_WRITER, *self.kind.ignore.get("snapshot", ()), *self.kind.ignore.get("every", ())]
        untouched = _without(before, batch, self.kind.key)
        assert_same_rows(_without(after, batch, self.kind.key), untouched, ignore=ignored, what="rows that Hudi did not touch")
        assert after.num_rows - untouched.num_rows == batch.num_rows, "a key of Hudi's batch is missing or there twice"

    def _take(self, step: Step) -> None:
        if isinstance(step, Sql):
            name = "zoo_" + self.kind.name.replace("-", "_")
            newest = instants_of(self.path)[-1] if "{newest}" in "".join(step.statements) else ""
            texts = [text.format(t=name, path=self.path, newest=newest) for text in step.statements]
            self.maker.sql(*texts, conf={**self.kind.conf, **step.conf})
            return
        if isinstance(step, Property):
            stored = self.path / ".hoodie" / "hoodie.properties"
            kept = [line for line in stored.read_text().splitlines() if not line.startswith(f"{step.key}=")]
            stored.write_text("\n".join([*kept, f"{step.key}={step.value}", ""]))
            stored.with_name(f".{stored.name}.crc").unlink(missing_ok=True)
            return
        self._hudi_writes(self.path, self._batch(step.numbers, step.seed), step.operation, step.options)

    def _hudi_writes(self, path: Path, rows: pa.Table, operation: str | None, more: Mapping[str, str] | None = None) -> None:
        asked = {"hoodie.datasource.write.operation": operation} if operation else {}
        named = {"hoodie.table.name": self._table_name(path)}
        self.maker.write(path, rows, {**named, **self.kind.options, **asked, **(more or {})}, conf=self.kind.conf)

    def _table_name(self, path: Path) -> str:
        stored = path / ".hoodie" / "hoodie.properties"
        found = re.search(r"^hoodie\.table\.name=(.*)$", stored.read_text(), re.MULTILINE) if stored.exists() else None
        return found[1] if found else "zoo_" + self.kind.name.replace("-", "_")

    def _ours(self) -> HoodieTable:
        return HoodieTable.open(str(self.path), options={**OURS, **self.kind.ours})

    def _batch(self, numbers: Any, seed: int) -> pa.Table:
        return self.kind.rows.batch(list(numbers), seed)

    def _compact(self) -> bool:
        """Run what is pending, and compact; whether that is possible."""
        table = self._ours()
        if table.config.table_type is not TableType.MERGE_ON_READ:
            return False
        if any(instant.action is Action.COMPACTION for instant in table.timeline.pending()):
            assert table.compact("run").instant is not None
        done = table.compact("schedule_and_run")
        # Inserts go to base files, which leaves nothing to compact.
        assert done.instant is not None or self.kind.inserts_only
        return True


def _without(rows: pa.Table, gone: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows whose key is not in `gone`."""
    if not gone.num_rows:
        return rows
    numbered = rows.select(list(key)).append_column("row", pa.array(range(rows.num_rows)))
    kept = numbered.join(gone.select(list(key)).cast(numbered.drop_columns("row").schema), list(key), join_type="left anti")
    return rows.take(kept.column("row").combine_chunks().sort())


def queries(path: Path) -> dict[str, Query]:
    """The queries that the table's timeline allows, by name."""
    instants = instants_of(path)
    asked = {"snapshot": Query()}
    if "MERGE_ON_READ" in (path / ".hoodie" / "hoodie.properties").read_text():
        asked["read_optimized"] = Query(read_optimized=True)
    if instants:
        asked["incremental"] = Query(begin="000", end=instants[-1])
    if len(instants) > 1:
        asked["as_of"] = Query(as_of=instants[-2])
        asked["from_first"] = Query(begin=instants[0], end=instants[-1])
    return asked


def instants_of(path: Path) -> list[str]:
    """Completed writes of the active timeline."""
    return sorted(match[1] for file in (path / ".hoodie").iterdir() if (match := INSTANT.match(file.name)))


def our_reading(path: Path, query: Query) -> pa.Table:
    table = HoodieTable.open(str(path), options=OURS)
    kind = "read_optimized" if query.read_optimized else "incremental" if query.begin is not None else "snapshot"
    begin = "earliest" if query.begin == "000" else query.begin
    return table.to_arrow(meta_columns=True, query=kind, as_of=query.as_of, begin=begin, end=query.end)
