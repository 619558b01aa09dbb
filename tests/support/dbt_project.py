"""A dbt project in a folder of its own, and dbt as an analytics engineer types it."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from dbt.cli.main import dbtRunner

from lakehouse_engine.table import HoodieTable
from tests.support.readers import assert_same_rows, read_with_hudi_rs

ROOT = str(Path(__file__).resolve().parents[2])


class Project:
    """Its schema is `s`; `profile` are more keys of the profile's target (at least which Spark), `given` more of `dbt_project.yml`.

    A command is a process of its own if it is told `alone`: those whose effect must come from the table and from nothing in memory. The
    others share the Spark of this one, since starting Spark is most of what a command does.
    """

    def __init__(self, folder: Path, profile: Mapping[str, Any], **given: Any) -> None:
        self.folder = folder
        self.warehouse = self.place(folder)
        (folder / "models").mkdir()
        project = {"name": "shop", "version": "1.0", "config-version": 2, "profile": "shop", **given}
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
        target = {"type": "lakehouse", "schema": "s", "warehouse": str(self.warehouse), **profile}
        (folder / "profiles.yml").write_text(yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": target}}}))

    @staticmethod
    def place(folder: Path) -> Path:
        """Where the warehouse is; suites that run over a bucket (LAKEHOUSE_STORE) have another answer."""
        return folder / "lakehouse"

    def dbt(self, *arguments: str, fails: bool = False, alone: bool = False) -> str:
        failed, output = self._process(*arguments) if alone else self._here(*arguments)
        assert failed == fails, output
        return output

    @property
    def environment(self) -> dict[str, str]:
        """That of a process of its own."""
        path = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
        return {**os.environ, "PYTHONPATH": path, "DBT_PROFILES_DIR": str(self.folder), "DO_NOT_TRACK": "1"}

    def _process(self, *arguments: str) -> tuple[bool, str]:
        command = [sys.executable, "-m", "dbt.cli.main", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        return done.returncode != 0, done.stdout + done.stderr

    def _here(self, *arguments: str) -> tuple[bool, str]:
        before, printed = Path.cwd(), io.StringIO()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(printed):
                answer = dbtRunner().invoke([*arguments, "--profiles-dir", str(self.folder)])
        finally:
            os.chdir(before)
        return not answer.success, f"{printed.getvalue()}{answer.exception or ''}"

    def table(self, name: str) -> HoodieTable:
        return HoodieTable.open(str(self.warehouse / "s" / name))

    def rows(self, name: str) -> pa.Table:
        """What we read, after it was compared with what hudi-rs reads."""
        rows = self.table(name).to_arrow(meta_columns=True)
        assert_same_rows(read_with_hudi_rs(self.warehouse / "s" / name), rows)
        return rows
