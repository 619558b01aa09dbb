"""Constraints of a contract as conditions that a row must not meet."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.writing.checks.constraints import checks_of, contract_text, lengths_of, uniques_of, violation_query

MODEL = {
    "config": {"contract": {"enforced": True}},
    "columns": {
        "id": {"constraints": [{"type": "not_null"}, {"type": "unique"}]},
        "n": {"constraints": [{"type": "check", "expression": "n > 0"}]},
    },
    "constraints": [{"type": "check", "name": "sane", "expression": "n < id"}, {"type": "primary_key", "columns": ["id"]}],
}


def test_not_null_check_and_primary_key_are_enforced() -> None:
    assert [check.violated for check in checks_of(MODEL)] == ["`id` is null", "not (n > 0)", "not (n < id)", "`id` is null"]
    assert checks_of(MODEL)[2].label == "check constraint 'sane' (n < id)"


def test_nothing_is_checked_without_a_contract() -> None:
    assert checks_of({**MODEL, "config": {}}) == []


def test_what_is_unique_is_told_once_for_the_same_columns() -> None:
    assert [(one.label, one.columns) for one in uniques_of(MODEL)] == [("unique constraint (id)", ("id",))]
    assert uniques_of({**MODEL, "config": {}}) == []


def test_all_checks_are_one_query() -> None:
    def counted(violated: str) -> str:
        example = "left(to_json(struct(*), map('ignoreNullFields', 'false')), 300)"
        return f"count_if({violated}), min(case when {violated} then {example} end)"

    assert violation_query(checks_of(MODEL)[:2], "v") == f"select {counted('`id` is null')}, {counted('not (n > 0)')} from v"


def test_lengths_of_text_are_those_of_the_contract() -> None:
    columns = {"a": {"data_type": "varchar(3)"}, "b": {"data_type": "string"}, "c": {"data_type": "int"}, "d": {}}
    model = {"config": {"contract": {"enforced": True}}, "columns": columns}
    assert lengths_of(model) == {"a": 3, "b": None}
    assert [(check.label, check.violated) for check in checks_of(model)] == [("varchar(3) of column 'a'", "char_length(`a`) > 3")]
    assert lengths_of({**model, "config": {}}) == {}


def test_the_text_of_a_contract_says_what_becomes_of_each_constraint_in_lines_of_comments() -> None:
    key = {"type": "foreign_key", "columns": ["id"], "to": "s.t", "to_columns": ["key"]}
    unique = {"type": "unique", "name": "u", "columns": ["n", "id"]}
    model = {**MODEL, "constraints": [{"type": "check", "expression": "n <\n  id"}, unique, key]}
    assert contract_text(model).splitlines() == [
        "-- refused before the commit: rows against the not_null constraint on column 'id'",
        "-- refused before the commit: rows against the check constraint (n > 0)",
        "-- refused before the commit: rows against the check constraint (n < id)",
        "-- refused before the commit: rows against the unique constraint (id)",
        "-- refused before the commit: rows against the unique constraint 'u' (n, id)",
        "-- not enforced: foreign_key (id) references s.t (key)",
    ]
    assert contract_text({**model, "config": {}}) == ""


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("generated  always as (date(ts))", r"\(generated always as \(date\(ts\)\)\) of day .*`day` <=> \(date\(ts\)\)"),
        ("masked", r"\(masked\) of day .*expression: '<condition>'"),
    ],
)
def test_a_custom_constraint_is_refused_with_a_check_that_stands_for_it(expression: str, said: str) -> None:
    model = {**MODEL, "name": "m", "columns": {"day": {"constraints": [{"type": "custom", "expression": expression}]}}}
    with pytest.raises(DbtConfigError, match=f"m: the custom constraint {said}"):
        checks_of(model)
    assert checks_of({**model, "config": {}}) == []
