"""dbt in this process, on a copy of the project. Spark is started by the first command that needs it and stays for the process."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

from lakehouse_engine import HoodieTable

SOURCE = Path(__file__).resolve().parents[2] / "dbt_project"
SCHEMA = "tpch"
FAST_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # most statements run once: compiling them well takes longer than running them
SNAPSHOTS = ("orders_snapshot", "customers_snapshot")
INCREMENTAL = ("orders", "lineitems", "order_status", "order_events", "daily_revenue", "customer_years", *SNAPSHOTS)


@dataclass(frozen=True)
class Run:
    """What one command did: `nodes` are the results of `run_results.json` by the node's name."""

    success: bool
    message: str
    nodes: Mapping[str, Mapping[str, Any]]
    value: Any = None

    def response(self, name: str) -> dict[str, Any]:
        return dict(self.nodes[name]["adapter_response"])

    def failures(self) -> dict[str, str]:
        bad = {name: node["message"] for name, node in self.nodes.items() if node["status"] not in ("success", "pass", "no-op")}
        return bad if bad or self.success else {"dbt": self.message}


class Project:
    """A copy of the project in `folder`, with its warehouse beside the models; `landing` is where its sources lie."""

    def __init__(self, folder: Path, landing: Path) -> None:
        self.folder = folder
        self.landing = landing
        if not folder.exists():
            shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("target", "logs", "lakehouse"))

    @property
    def warehouse(self) -> Path:
        return self.folder / "lakehouse"

    def copy_to(self, folder: Path, landing: Path | None = None) -> Project:
        """The project with its tables, to go on from here without changing this one."""
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("logs"))
        return Project(folder, landing or self.landing)

    def environment(self) -> dict[str, str]:
        return {"TPCH_LANDING": str(self.landing), "DBT_PROFILES_DIR": str(self.folder), "SPARK_JAVA_OPTIONS": FAST_START}

    def dbt(self, *arguments: str) -> Run:
        """Run a command as a user would from the project's folder; it may fail."""
        results = self.folder / "target" / "run_results.json"
        results.unlink(missing_ok=True)
        with self._here():
            answer = dbtRunner().invoke([*arguments, "--log-level", "none", "--log-level-file", "info"])
        found = json.loads(results.read_text())["results"] if results.exists() else []
        nodes = {result["unique_id"].split(".")[2]: result for result in found}
        return Run(answer.success, str(answer.exception or ""), nodes, answer.result)

    def table_path(self, name: str) -> Path:
        return self.warehouse / (f"{SCHEMA}_snapshots" if name in SNAPSHOTS else SCHEMA) / name

    def table(self, name: str) -> HoodieTable:
        return HoodieTable.open(str(self.table_path(name)))

    def artifact(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / "target" / name).read_text()))

    @contextmanager
    def _here(self) -> Iterator[None]:
        before, folder = dict(os.environ), Path.cwd()
        os.environ.update(self.environment())
        os.chdir(self.folder)
        try:
            yield
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)


def last_instant(table: HoodieTable) -> str:
    """The newest completed write."""
    newest = table.timeline.completed().writes().last()
    assert newest is not None
    return newest.requested_time
