"""How another Hudi writer goes on with a table: the operations that a team running Spark would use, with their pitfalls kept away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.interop.client import HudiJudge
from tests.support.readers import assert_same_rows

# A batch writer compacts by itself after every fifth delta commit.
_OWN_SERVICES_OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}


@dataclass(kw_only=True)
class HudiWriter:
    """Apache Hudi as the next writer of the table at `path`.

    `options` are write options (name, keys, partitioning); `metadata_table` says whether this writer keeps one, which is Hudi's default;
    without `index` the choice is the table's. `conf` are session settings for all that it does, as procedures see no write options.
    """

    judge: HudiJudge
    path: Path
    options: Mapping[str, str]
    index: str | None = "SIMPLE"
    metadata_table: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)

    def upsert(self, rows: pa.Table) -> None:
        self._write(rows, "upsert")

    def insert(self, rows: pa.Table) -> None:
        self._write(rows, "insert")

    def delete(self, rows: pa.Table) -> None:
        """Delete by key; `rows` need the key, partition and ordering columns at least."""
        self._write(rows, "delete")

    def cluster(self, order: str) -> None:
        """Rewrite all file groups sorted by the columns in `order`, which must make Hudi plan something."""
        small = {"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"}
        self.judge.call("run_clustering", table=self._registered, op="scheduleAndExecute", order=order, conf={**self._session(), **small})

    def compact(self, op: str) -> None:
        """`schedule`, `run` or `scheduleAndExecute`; what is planned is whatever has logs."""
        due = {"hoodie.compact.inline.max.delta.commits": "1"}
        self.judge.call("run_compaction", op=op, table=self._registered, conf={**self._session(), **due})

    def rollback(self, instant: str) -> None:
        self.judge.call("rollback_to_instant", table=self._registered, instant_time=instant, conf=self._session())

    def clean(self, retain_commits: int) -> None:
        self.judge.call("run_clean", table=self._registered, retain_commits=retain_commits, conf=self._session())

    def archive(self, least: int, most: int) -> None:
        self.judge.call(
            "archive_commits",
            table=self._registered,
            min_commits=least,
            max_commits=most,
            retain_commits=1,
            enable_metadata=self.metadata_table,
            conf=self._session(),
        )

    def listed(self, procedure: str, **arguments: object) -> list[dict[str, Any]]:
        """The rows of one of the `show_...` procedures."""
        shown = self.judge.call(procedure, table=self._registered, limit=1000, **arguments, conf=self._session())
        return [] if shown is None else shown.to_pylist()

    def archived(self) -> list[dict[str, Any]]:
        """Archived commits of every kind that writes rows; without the bounds Hudi leaves out those of today."""
        return self.listed("show_archived_commits", start_ts="000", end_ts="9")

    def savepoint(self, instant: str) -> None:
        self.judge.call("create_savepoint", table=self._registered, commit_time=instant, user="u", comments="", conf=self._session())

    def restore(self, instant: str) -> None:
        self.judge.call("rollback_to_savepoint", table=self._registered, instant_time=instant, conf=self._session())

    def delete_savepoint(self, instant: str) -> None:
        self.judge.call("delete_savepoint", table=self._registered, instant_time=instant, conf=self._session())

    def read(self, **query: str) -> pa.Table:
        """What Hudi reads by listing; where this writer keeps a metadata table, reading through it must give the same."""
        listed = self.judge.read(self.path, **query, options={"hoodie.metadata.enable": "false"})
        if self.metadata_table:
            assert_same_rows(self.judge.read(self.path, **query, options={"hoodie.metadata.enable": "true"}), listed)
        return listed

    def version(self) -> str:
        """The table version as `hoodie.properties` says."""
        lines = (self.path / ".hoodie" / "hoodie.properties").read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("hoodie.table.version="))

    def instants(self, suffix: str = "commit") -> list[str]:
        """Times of the completed instants whose file ends in `.suffix`, in order."""
        later = self.path / ".hoodie" / "timeline"
        files = (later if later.is_dir() else self.path / ".hoodie").glob(f"*.{suffix}")
        return sorted(file.name.split(".")[0].split("_")[0] for file in files if file.name.count(".") == 1)

    def _write(self, rows: pa.Table, operation: str) -> None:
        asked = {"hoodie.datasource.write.operation": operation, **_OWN_SERVICES_OFF, **self._metadata()}
        if self.index is not None:
            asked["hoodie.index.type"] = self.index
        self.judge.write(self.path, rows, {**self.options, **asked}, conf=self.conf)

    def _session(self) -> dict[str, str]:
        return {**_OWN_SERVICES_OFF, **self._metadata(), **self.conf}

    def _metadata(self) -> dict[str, str]:
        return {"hoodie.metadata.enable": str(self.metadata_table).lower()}

    @cached_property
    def _registered(self) -> str:
        return self.judge.register(self.path)
