"""Walks of actions on Spark, each in a session of its own: hence another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.walks import ON_SPARK
from tests.support.connect_server import classic_only

ROOT = Path(__file__).resolve().parents[2]


@classic_only("the benchmark starts a Spark of its own")
def test_actions_on_spark_are_walked() -> None:
    command = [sys.executable, "-m", "benchmarks.walks", *ON_SPARK, "--files"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| ") and line.split()[1] in ON_SPARK] == list(ON_SPARK)
    entered = {line.split()[1].removesuffix(":") for line in lines if line.startswith("    ")}
    assert {"spark/frames/frame_plan.py", "sql/router.py", "write/operation.py", "dbt/adapters/lakehouse/impl.py"} <= entered
