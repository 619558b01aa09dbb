"""What the adapter loads before it can say what to start: dbt waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("pyarrow", "pandas", "numpy", "pyspark", "py4j", "fastavro", "lakehouse_engine.view", "lakehouse_engine.write")


def test_the_adapter_is_imported_without_what_only_a_warehouse_needs() -> None:
    code = f"import sys, dbt.adapters.lakehouse; print([name for name in {HEAVY!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert answer.stdout.strip() == "[]", answer.stderr


def test_what_is_loaded_while_the_jvm_starts_is_what_a_write_uses(tmp_path: Path) -> None:
    """No module is imported by the first statements themselves, which come after the JVM."""
    code = f"""
import sys
from dbt.adapters.lakehouse.bridge import warehouse as bridge
bridge.load()
import pyarrow as pa
before = set(sys.modules)
house = bridge.Warehouse({str(tmp_path)!r}, options={{"lakehouse.task.threads": 1}})
house.create_schema("s")
rows = pa.table({{"id": [1], "name": ["a"]}})
house.create_filled("s", "t", rows, bridge.TableShape(("id",), (), (), True), {{}}, {{}})
house.table("s", "t").upsert(rows)
from lakehouse_engine import spark, statements
print([name for package in (spark, spark.frames, statements) for name in package.__all__ if f"{{package.__name__}}.{{name}}" not in before])
print(sorted(name for name in set(sys.modules) - before if name.split(".")[0] in {("lakehouse_engine", *HEAVY)!r}))
"""
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert answer.stdout.splitlines() == ["[]", "[]"], answer.stdout + answer.stderr


def test_seeds_and_operations_load_no_pyspark(tmp_path: Path) -> None:
    code = f"""
import sys
import pyarrow as pa
from dbt.adapters.lakehouse.bridge import describe, warehouse as bridge
from dbt.adapters.lakehouse.operations import operate
from dbt.adapters.lakehouse.writing.selection import Selected
house = bridge.Warehouse({str(tmp_path)!r}, options={{"lakehouse.task.threads": 1}})
house.create_schema("s")
house.create_filled("s", "t", pa.table({{"id": [1], "name": ["a"]}}), bridge.TableShape(("id",), (), (), True), {{}}, {{}})
describe.statistics(house.look("s", "t"))
report = operate(house, "verify", [Selected("t", "s", "t")], {{}})
print(len(report.rows), report.failures, [name for name in ("pyspark", "py4j") if name in sys.modules])
"""
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert answer.stdout.strip() == "1 [] []", answer.stdout + answer.stderr


@pytest.mark.parametrize("command", ["parse", "ls"])
def test_commands_that_only_look_at_the_project_load_neither_arrow_nor_spark(tmp_path: Path, command: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.sql").write_text("{{ config(materialized='incremental', unique_key='id') }} select 1 as id")
    (tmp_path / "dbt_project.yml").write_text("name: p\nversion: '1.0'\nprofile: p\n")
    (tmp_path / "profiles.yml").write_text("p: {target: dev, outputs: {dev: {type: lakehouse, schema: s}}}\n")
    code = f"""
import sys
from dbt.cli.main import dbtRunner
result = dbtRunner().invoke(["--quiet", {command!r}, "--project-dir", {str(tmp_path)!r}, "--profiles-dir", {str(tmp_path)!r}])
print("LOADED", result.success, [name for name in {HEAVY!r} if name in sys.modules])
"""
    answer = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert "LOADED True []" in answer.stdout, answer.stdout + answer.stderr
