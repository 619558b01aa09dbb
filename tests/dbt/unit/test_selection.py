"""Which tables a run-operation means."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.writing.selection import Selected, select_tables


def node(name: str, kind: str = "model", materialized: str = "table", tags: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    config = {"materialized": materialized}
    return {"name": name, "resource_type": kind, "schema": "s", "alias": name, "tags": list(tags), "config": config, **more}


NODES = {
    "model.p.orders": node("orders", tags=("finance",)),
    "model.p.customers": node("customers", materialized="incremental", tags=("finance", "crm"), alias="clients"),
    "model.p.stg": node("stg", materialized="view", tags=("finance",)),
    "seed.p.rates": node("rates", "seed", "seed"),
    "snapshot.p.later": node("later", "snapshot", "snapshot", tags=("finance",)),
    "test.p.t": node("t", "test", "test", tags=("finance",)),
}
THERE = {("s", "orders"), ("s", "clients"), ("s", "rates"), ("other", "raw")}


def chosen(**ways: Any) -> list[str]:
    return [str(one) for one in select_tables(NODES, ways, lambda *name: name in THERE)]


def test_a_model_is_found_by_name_under_its_alias() -> None:
    found = select_tables(NODES, {"model": "customers", "all": False}, lambda *name: name in THERE)
    assert found == [Selected("customers", "s", "clients")]


def test_a_tag_and_all_take_what_is_stored_and_there() -> None:
    assert chosen(tag="finance") == ["s.clients", "s.orders"]
    assert chosen(all=True) == ["s.clients", "s.orders", "s.rates"]


def test_a_relation_need_not_belong_to_the_project() -> None:
    assert chosen(relation="other.raw") == ["other.raw"]
    assert chosen(relation="`other`.`raw`") == ["other.raw"]


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ({}, "given: none"),
        ({"model": "orders", "tag": "finance"}, "given: model, tag"),
        ({"model": "ordres"}, "did you mean 'orders'"),
        ({"model": "stg"}, "materialization is view"),
        ({"model": "later"}, "run the model first"),
        ({"all": "false"}, "all is true or false"),
        ({"tag": "nothing"}, "no table has the tag 'nothing'"),
        ({"relation": "orders"}, "schema.table"),
        ({"relation": "s.nothing"}, "no table s.nothing"),
        ({"relation": "a.b.c"}, "schema.table"),
        ({"relation": "../../etc.passwd"}, "schema.table|no table"),
    ],
)
def test_a_selection_without_a_table_is_refused(ways: dict[str, Any], words: str) -> None:
    with pytest.raises(DbtRuntimeError, match=words):
        chosen(**ways)


def test_nodes_of_one_name_in_two_packages_are_told_apart_by_relation() -> None:
    twice = {**NODES, "model.q.orders": node("orders", schema="q")}
    with pytest.raises(DbtRuntimeError, match=r"s\.orders, q\.orders"):
        select_tables(twice, {"model": "orders"}, lambda *name: True)


def test_a_table_brings_the_options_of_its_model_and_of_the_profile() -> None:
    nodes = {"model.p.m": node("orders", tags=("crm",), config={"materialized": "table", "cleaning": {"commits_retained": 2}})}
    defaults = {"hoodie.keep.min.commits": "9"}
    for ways in ({"model": "orders"}, {"tag": "crm"}, {"all": True}):
        (one,) = select_tables(nodes, ways, lambda *name: True, defaults)
        of_model = {"hoodie.clean.commits.retained": "2", "hoodie.clean.policy": "KEEP_LATEST_COMMITS"}
        assert one.options == {"hoodie.keep.min.commits": "9", **of_model}, ways
    (other,) = select_tables({}, {"relation": "s.orders"}, lambda *name: True, defaults)
    assert other.options == defaults
