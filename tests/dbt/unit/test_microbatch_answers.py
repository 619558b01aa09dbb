"""Where dbt-core loads its runner of batches only when a command starts, the adapter finds it all the same."""

from __future__ import annotations

import subprocess
import sys

FRESH = """
from types import SimpleNamespace
import dbt.cli.main, sys
from dbt.adapters.lakehouse.writing.microbatch import mend_batches
mend_batches()
assert "dbt.task.run" not in sys.modules
from dbt.task.run import MicrobatchModelRunner as Runner
mend_batches()
mend_batches()
batches = [SimpleNamespace(adapter_response={"instant": str(one), "inserts": 2}, batch_results=None, execution_time=0) for one in (1, 2)]
runner = SimpleNamespace(adapter=SimpleNamespace(type=lambda: "lakehouse"), node=SimpleNamespace(previous_batch_results=None))
result = SimpleNamespace(batch_results=None, execution_time=0, adapter_response={})
Runner.merge_batch_results(runner, result, batches)
Runner.merge_batch_results(runner, result, [])
assert result.adapter_response["instants"] == ["1", "2"], result.adapter_response
assert result.adapter_response["inserts"] == 4
"""


def test_the_runner_is_found_once_it_is_loaded_and_no_results_take_nothing_away() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
