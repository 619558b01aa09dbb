"""What the adapter loads before it can say what to start: dbt waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("pyarrow", "pandas", "numpy", "pyspark", "py4j", "fastavro", "lakehouse_engine.view", "lakehouse_engine.write")


def test_the_adapter_is_imported_without_what_only_a_warehouse_needs() -> None:
    code = f"import sys, dbt.adapters.lakehouse; print([name for name in {HEAVY!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert answer.stdout.strip() == "[]", answer.stderr
