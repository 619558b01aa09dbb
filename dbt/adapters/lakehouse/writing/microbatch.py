"""What a microbatch model answers with: dbt-core merges the results of its batches, and drops what the adapter said of each.

dbt-core has no hook there, so its `merge_batch_results` is wrapped, for models of this adapter only. A dbt-core that has no such method
is left as it is: then the answer stays empty, as dbt-core makes it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

_COUNTS = ("rows_affected", "inserts", "updates", "deletes", "files_created", "files_updated", "log_files", "bytes_written")
_MARK = "_lakehouse_merges_responses"


def merged(responses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The responses of a model's batches as one: counts are sums, `instant` is the newest, `instants` has all in order.

    `previous_instant` is that before the oldest, so that what the run changed lies between the two.
    """
    wrote = sorted((one for one in responses if one.get("instant")), key=lambda one: str(one["instant"]))
    given = [one for one in responses if one]
    if not given:
        return {}
    newest, oldest = (wrote[-1], wrote[0]) if wrote else (given[-1], given[0])
    sums = {name: sum(int(one.get(name) or 0) for one in given) for name in _COUNTS}
    instants = {"instants": [one["instant"] for one in wrote]} if wrote else {}
    return {**newest, **{key: oldest[key] for key in ("previous_instant",) if key in oldest}, **sums, **instants}


def fill_responses() -> None:
    """Make dbt-core, if it is what runs here, keep what the batches of this adapter's models answer. Does nothing a second time."""
    runner = getattr(sys.modules.get("dbt.task.run"), "MicrobatchModelRunner", None)
    merge = getattr(runner, "merge_batch_results", None)
    if runner is None or merge is None or hasattr(merge, _MARK):
        return

    @wraps(merge)
    def merge_batch_results(self: Any, result: Any, batch_results: Sequence[Any]) -> Any:
        answer = merge(self, result, batch_results)
        if batch_results and self.adapter.type() == "lakehouse":  # without any, dbt-core only counts what was not run
            result.adapter_response = merged([one.adapter_response for one in batch_results])
        return answer

    setattr(merge_batch_results, _MARK, True)
    runner.merge_batch_results = merge_batch_results
