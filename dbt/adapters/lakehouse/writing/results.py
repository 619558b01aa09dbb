"""dbt's results of a run, where audited models were not published: what dbt shows at its end, and what `dbt retry` does again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PASSED = ("pass", "warn")
_DONE = ("success", *PASSED)


def mark_results(
    results: Iterable[Any], unpublished: Mapping[str, str], left_behind: Mapping[str, str], tests: Mapping[str, Sequence[str]]
) -> set[str]:
    """Turn results of models that succeeded but are not published into errors, and their passed tests into skipped ones, as the rows that
    those passed on are gone. Returns the texts that are in the results now.

    `unpublished` and `left_behind` are texts by model. The latter are models that a retry tests without building them: their tests become
    errors. Results that failed by themselves keep their own text.
    """
    said: set[str] = set()
    for result in results:
        node = str(result.node.unique_id)
        behind = [text for model, text in left_behind.items() if node in tests[model]]
        missed = [model for model in unpublished if node in tests[model]]
        if node in unpublished:
            said.add(unpublished[node])
            _become(result, "error", unpublished[node])
        elif behind:
            said.update(behind)
            _become(result, "error", behind[0])
        elif missed:
            _become(result, "skipped", f"it passed on rows that are not published ({', '.join(missed)})")
    return said


def _become(result: Any, status: str, text: str) -> None:
    if result.status in _DONE:
        result.status, result.message = type(result.status)(status), text
