"""The responses of batches, as one."""

from __future__ import annotations

from dbt.adapters.lakehouse.writing.microbatch import merged


def test_counts_are_added_and_instants_span_all_batches() -> None:
    batches = [
        {"instant": "20260102", "previous_instant": "20260101", "operation": "upsert", "inserts": 2, "rows_affected": 2, "code": "UPSERT"},
        {"instant": "20260103", "previous_instant": "20260102", "operation": "upsert", "inserts": 3, "rows_affected": 4, "updates": 1},
        {"previous_instant": "20260103", "operation": "upsert", "inserts": 0},
        {},
    ]
    found = merged(batches)
    assert (found["instant"], found["previous_instant"], found["instants"]) == ("20260103", "20260101", ["20260102", "20260103"])
    assert (found["inserts"], found["updates"], found["rows_affected"], found["operation"]) == (5, 1, 6, "upsert")


def test_the_first_build_has_no_instant_before_it() -> None:
    found = merged([{"instant": "20260101000000001"}, {"instant": "20260101000000002", "previous_instant": "20260101000000001"}])
    assert (found["instant"], found["previous_instant"]) == ("20260101000000002", None)


def test_without_a_response_there_is_none() -> None:
    assert merged([{}, {}]) == {}
