"""The class archive with the real Java: one is made, and the JVM of the next start has it in its memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.lakehouse.environments import archive, jvm, local

ROOT = Path(__file__).resolve().parents[3]
START = """
import sys
from pathlib import Path
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments.local import LocalEnvironment
spark = LocalEnvironment(LakehouseCredentials(schema="s", jvm_cache=sys.argv[1])).session()
maps = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()
print("USED", any(line.endswith(".jsa") and sys.argv[1] in line for line in maps.splitlines()), spark.sql("select 1").collect()[0][0])
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has mapped is read from /proc")
def test_a_made_archive_is_used_by_the_next_start_and_one_that_does_not_fit_is_not(tmp_path: Path) -> None:
    place = archive.archive_for(tmp_path, local.java_answer(), jvm.spark_home())
    made = python("-m", archive.BUILDER, str(tmp_path), place.name, "0")
    assert not place.failure.exists(), place.failure.read_text()
    assert [path.suffix for path in tmp_path.iterdir()] == [".jsa"], made.stderr
    used = python("-c", START, str(tmp_path))
    assert "USED True 1" in used.stdout, used.stderr
    assert "[cds" not in used.stdout + used.stderr
    # Whole by its name, and of no use to Java: it goes on without, and says nothing.
    path = place.find()
    dumped = tmp_path / "other.tmp"
    dumped.write_bytes(b"\0" * 4096 + path.read_bytes()[4096:])
    path.unlink()
    place.publish(dumped)
    unused = python("-c", START, str(tmp_path))
    assert "USED False 1" in unused.stdout, unused.stderr
    assert "[cds" not in unused.stdout + unused.stderr
