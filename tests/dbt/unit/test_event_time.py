"""Ranges of event time as SQL: literals are of the column's own type."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from dbt.adapters.base.relation import EventTimeFilter

from dbt.adapters.lakehouse.reading.event_time import bounds
from dbt.adapters.lakehouse.relation import LakehouseRelation

BEGIN, END = (datetime(2026, 1, 2, hour, tzinfo=timezone.utc) for hour in (5, 6))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("timestamp", ["at >= timestamp '2026-01-02 05:00:00+00:00'", "at < timestamp '2026-01-02 06:00:00+00:00'"]),
        ("date", ["at >= date '2026-01-02'", "at < date '2026-01-02'"]),
        ("timestamp_ntz", ["at >= '2026-01-02 05:00:00+00:00'", "at < '2026-01-02 06:00:00+00:00'"]),
        (None, ["at >= '2026-01-02 05:00:00+00:00'", "at < '2026-01-02 06:00:00+00:00'"]),
    ],
)
def test_a_bound_is_a_literal_of_the_columns_type(kind: str | None, expected: list[str]) -> None:
    assert bounds("at", kind, BEGIN, END) == expected


def test_a_bound_that_is_not_given_is_none_and_one_of_a_project_stays_text() -> None:
    assert bounds("at", "date", None, END) == ["at < date '2026-01-02'"]
    assert bounds("at", "date", "2026-01-02", None) == ["at >= '2026-01-02'"]


@pytest.mark.parametrize(("kind", "is_checked"), [("timestamp", False), ("string", True), (None, True)])
def test_a_relation_is_narrowed_by_the_type_that_its_adapter_knows(kind: str | None, is_checked: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(LakehouseRelation, "types_of", staticmethod(lambda _: {} if kind is None else {"at": kind}))
    relation = LakehouseRelation.create(schema="s", identifier="t", event_time_filter=EventTimeFilter("`At`", BEGIN, END))
    text = str(relation)
    assert ("typeof(`At`)" in text) == is_checked
    assert ("`At` < timestamp '2026-01-02 06:00:00+00:00'" in text) == (kind == "timestamp")
