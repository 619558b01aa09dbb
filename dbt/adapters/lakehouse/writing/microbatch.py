"""What a microbatch model answers with, and how a retry of some of its batches begins.

dbt-core merges the results of batches and drops what the adapter said of each; and of those that it retries of a full refresh it runs the
first as a full refresh. It has no hook there, so its methods are wrapped, for models of this adapter only. A dbt-core that has no such
method is left as it is: then the answer stays empty, as dbt-core makes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

_COUNTS = ("rows_affected", "inserts", "updates", "deletes", "files_created", "files_updated", "log_files", "bytes_written")
_MARK = "_lakehouse_wrapped"


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


def mend_batches() -> None:
    """Make dbt-core, if it is what runs here, keep what the batches of this adapter's models answer, and what they wrote when others are
    retried. Does nothing a second time.
    """
    runner = getattr(sys.modules.get("dbt.task.run"), "MicrobatchModelRunner", None)
    for name, around in (("merge_batch_results", _with_responses), ("_is_incremental", _beside_batches_that_are_there)):
        known = getattr(runner, name, None)
        if known is not None and not hasattr(known, _MARK):
            wrapped = wraps(known)(around(known))
            setattr(wrapped, _MARK, True)
            setattr(runner, name, wrapped)


def _with_responses(merge: Callable[..., Any]) -> Callable[..., Any]:
    def merge_batch_results(self: Any, result: Any, batch_results: Sequence[Any]) -> Any:
        answer = merge(self, result, batch_results)
        if batch_results and self.adapter.type() == "lakehouse":  # without any, dbt-core only counts what was not run
            result.adapter_response = merged([one.adapter_response for one in batch_results])
        return answer

    return merge_batch_results


def _beside_batches_that_are_there(is_incremental: Callable[..., Any]) -> Callable[..., Any]:
    """A retry of some batches of a full refresh is told to refresh in full, too: the first of them would replace those that succeeded."""

    def asked(self: Any, model: Any) -> Any:
        retried = self.adapter.type() == "lakehouse" and getattr(model, "previous_batch_results", None) is not None
        return is_incremental(self, model) or (retried and self._has_relation(model=model))

    return asked
