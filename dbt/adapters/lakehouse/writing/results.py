"""Adjusts dbt's results for audited models that were not published: what dbt shows at the end, and what `dbt retry` repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PASSED = ("pass", "warn")
_DONE = ("success", *PASSED)


def mark_results(
    results: Iterable[Any], unpublished: Mapping[str, str], left_behind: Mapping[str, str], tests: Mapping[str, Sequence[str]]
) -> set[str]:
    """Turn results of models that succeeded but are not published into errors, and their passed tests into skipped ones, because the tested
    rows are gone. Returns the texts now in the results.

    `unpublished` and `left_behind` map models to texts. The latter are models that a retry tests without building; their tests become
    errors. Results that failed by themselves keep their text.
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
