"""What becomes of dbt's results where audited models were not published."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dbt.artifacts.schemas.results import RunStatus, TestStatus

from dbt.adapters.lakehouse.writing.results import mark_results

TESTS = {"model.orders": ["test.a", "test.b"], "model.old": ["test.c"]}


def result(node: str, status: Any) -> Any:
    return SimpleNamespace(node=SimpleNamespace(unique_id=node), status=status, message="as it was")


def test_unpublished_models_are_errors_and_their_passed_tests_are_run_again() -> None:
    results = [
        result("model.orders", RunStatus.Success),
        result("test.a", TestStatus.Pass),
        result("test.b", TestStatus.Fail),
        result("test.c", TestStatus.Pass),
        result("model.other", RunStatus.Success),
    ]
    assert mark_results(results, {"model.orders": "Not published: s.orders"}, {}, TESTS) == {"Not published: s.orders"}
    assert [(str(one.status), one.message) for one in results] == [
        ("error", "Not published: s.orders"),
        ("skipped", "it passed on rows that are not published (model.orders)"),
        ("fail", "as it was"),
        ("pass", "as it was"),
        ("success", "as it was"),
    ]


def test_tests_of_what_a_retry_does_not_build_are_errors() -> None:
    results = [result("test.c", TestStatus.Pass)]
    assert mark_results(results, {}, {"model.old": "use dbt build"}, TESTS) == {"use dbt build"}
    assert (str(results[0].status), results[0].message) == ("error", "use dbt build")


def test_models_that_failed_by_themselves_keep_their_words() -> None:
    results = [result("model.orders", RunStatus.Error)]
    mark_results(results, {"model.orders": "Not published"}, {}, TESTS)
    assert results[0].message == "as it was"
