"""Results of microbatch models, and which batches run.

dbt-core merges the results of batches and drops the adapter's responses; when it retries batches of a full refresh it runs the first one as
a full refresh; and after a killed build it continues with the newest batches. It has no hook for these, so its methods are wrapped, for
models of this adapter only. A dbt-core without such a method is left unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.lakehouse.bridge.describe import oldest_first

_COUNTS = ("rows_affected", "inserts", "updates", "deletes", "files_created", "files_updated", "log_files", "bytes_written")
_MARK = "_lakehouse_wrapped"

logger = AdapterLogger("Lakehouse")


def merged(responses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Responses of a model's batches as one: counts are sums, `instant` is the newest, `instants` lists all in order.

    `previous_instant` is the one before the oldest, so the run's changes lie between the two.
    """
    wrote = oldest_first([one for one in responses if one.get("instant")])
    given = [one for one in responses if one]
    if not given:
        return {}
    newest, oldest = (wrote[-1], wrote[0]) if wrote else (given[-1], given[0])
    sums = {name: sum(int(one.get(name) or 0) for one in given) for name in _COUNTS}
    instants = {"instants": [one["instant"] for one in wrote]} if wrote else {}
    before = {key: oldest.get(key) for key in ("previous_instant",) if key in newest}
    return {**newest, **before, **sums, **instants}


def mend_batches() -> None:
    """Wrap dbt-core's methods, if dbt-core runs here, so that batches of this adapter's models keep their responses and a retry keeps what
    was written. A second call does nothing.
    """
    runner = getattr(sys.modules.get("dbt.task.run"), "MicrobatchModelRunner", None)
    ways = {"merge_batch_results": _with_responses, "_is_incremental": _beside_batches_that_are_there, "execute": _to_the_end}
    for name, around in ways.items():
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
    """Batches to run. A retry of some batches of a full refresh is asked to refresh in full, and its first batch would replace the
    successful ones. A killed build is repeated in full, unless the user asks for a time range.
    """

    def asked(self: Any, model: Any) -> Any:
        if self.adapter.type() != "lakehouse":
            return is_incremental(self, model)
        if getattr(model, "previous_batch_results", None) is not None:
            return is_incremental(self, model) or self._has_relation(model=model)
        return is_incremental(self, model) and not _is_made_again(self, model)

    return asked


def _to_the_end(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the build as finished once all batches were run. dbt reports the failed ones and can retry them. If none succeeded, or if a
    retry had to make the table, the next retry counts as a new run.
    """

    def executed(self: Any, model: Any, manifest: Any) -> Any:
        if self.adapter.type() != "lakehouse":
            return execute(self, model, manifest)
        relation, is_retry = _relation(self, model), model.previous_batch_results is not None
        self.adapter.forget_undone_build(relation)
        if not is_retry and _is_made_again(self, model):
            logger.info(f"{relation}: an earlier build was stopped before its last batch, so it is made again")
            self.adapter.begin_build(relation, model.unique_id)
        whole = False
        try:
            result = execute(self, model, manifest)
            whole = not is_retry and not self.pool.is_closed() and bool(result.batch_results.successful)
            return result
        finally:
            self.adapter.end_build(relation, model.unique_id, whole=whole)

    return executed


def _is_made_again(runner: Any, model: Any) -> bool:
    is_part = any(getattr(runner.config.args, name, None) for name in ("EVENT_TIME_START", "EVENT_TIME_END", "SAMPLE", "EMPTY"))
    return not is_part and bool(runner.adapter.is_unfinished(_relation(runner, model), model.unique_id))


def _relation(runner: Any, model: Any) -> Any:
    return runner.adapter.Relation.create_from(runner.config, model)
