"""Mappings and lists of unit tests as SQL of their columns' types."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.writing.nested import nested_literal

STRUCT = "struct<a:int,b:struct<c:decimal(10,2),d:array<string>>>"


@pytest.mark.parametrize(
    ("value", "kind", "sql"),
    [
        ([1, None], "array<int>", "cast(array(cast('1' as int), cast(null as int)) as array<int>)"),
        ([], "array<int>", "cast(array() as array<int>)"),
        ({"k": True}, "map<string,boolean>", "cast(map(cast('k' as string), cast('true' as boolean)) as map<string,boolean>)"),
        ({"A": "it's"}, "struct<a:string>", "cast(named_struct('a', cast('it\\'s' as string)) as struct<a:string>)"),
        (["map('a', 1)"], "array<map<string,int>>", "cast(array(cast(map('a', 1) as map<string,int>)) as array<map<string,int>>)"),
        (
            {"a": 1, "b": {"c": 1.5}},
            STRUCT,
            "cast(named_struct('a', cast('1' as int), 'b', cast(named_struct('c', cast('1.5' as decimal(10,2)), 'd', "
            f"cast(null as array<string>)) as struct<c:decimal(10,2),d:array<string>>)) as {STRUCT})",
        ),
    ],
)
def test_values_have_the_types_of_their_columns(value: Any, kind: str, sql: str) -> None:
    assert nested_literal(value, kind) == sql


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ({"aa": 1}, "struct<a:int,b:int>", "gives the member 'aa', which struct<a:int,b:int> does not have; did you mean 'a'"),
        ([1], "struct<a:int>", "give a mapping of its members"),
        ({"a": 1}, "array<int>", "give a list"),
        ({"a": 1}, "int", "give a plain value"),
        ({"a": {"b": 1}}, "struct<a:int>", "give a plain value"),
    ],
)
def test_values_that_a_type_cannot_have_are_refused_with_the_type(value: Any, kind: str, said: str) -> None:
    with pytest.raises(DbtRuntimeError, match=said):
        nested_literal(value, kind)
