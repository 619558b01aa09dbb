"""`dbt parse`, `dbt ls` and `dbt compile` of models that ask nothing start no JVM, and do not even load PySpark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from integration_tests.tests.support.dbt import Project

SCRIPT = """
import sys
from dbt.cli.main import dbtRunner
for arguments in (["parse"], ["ls"], ["compile", "--select", "stg_orders", "nation_regions"]):
    answer = dbtRunner().invoke([*arguments, "--quiet"])
    assert answer.success, (arguments, answer.exception)
assert "py4j" not in sys.modules and "pyspark" not in sys.modules, sorted(m for m in sys.modules if m.startswith("pyspark"))[:9]
"""


def test_parse_ls_and_compile_need_no_java(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", tmp_path / "landing")
    traps = tmp_path / "bin"
    traps.mkdir()
    trap = traps / "java"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    trap.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    root = str(Path(__file__).resolve().parents[2])
    environment |= {**project.environment(), "PATH": f"{traps}:{environment['PATH']}", "PYTHONPATH": root}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=project.folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert not (tmp_path / "started").exists()
    assert not project.warehouse.exists()
