"""How a batch's columns meet the table's under each `on_schema_change`."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError

from dbt.adapters.lakehouse.columns import plan_columns, resolve, resolve_paths
from dbt.adapters.lakehouse.reading.queries import split_deleted

TABLE = {"id": "int", "name": "string", "n": "bigint"}


def test_same_columns_in_another_order_are_put_in_the_tables_order() -> None:
    plan = plan_columns("m", "ignore", TABLE, {"n": "bigint", "NAME": "string", "id": "int"})
    assert plan.select == ("`id` as `id`", "`NAME` as `name`", "`n` as `n`")
    assert not plan.evolve
    assert plan.reshape is None


def test_ignore_leaves_new_columns_out_and_casts_numbers() -> None:
    plan = plan_columns("m", "ignore", TABLE, {"id": "bigint", "name": "string", "n": "int", "new": "int"})
    narrowed, *others = plan.select
    assert others == ["`name` as `name`", "cast(`n` as bigint) as `n`"]
    assert narrowed.startswith("case when `id` is null or try_cast(`id` as int) is not null then try_cast(`id` as int) else raise_error(")


def test_ignore_refuses_a_batch_without_a_stored_column() -> None:
    with pytest.raises(DbtDatabaseError, match=r"no longer has the column.*n of its table"):
        plan_columns("m", "ignore", TABLE, {"id": "int", "name": "string"})


def test_fail_names_every_difference() -> None:
    with pytest.raises(CompilationError, match=r"Not in the table: x\. Not in the model: n\. Other types: id int -> string"):
        plan_columns("m", "fail", TABLE, {"id": "string", "name": "string", "x": "int"})


def test_append_adds_new_columns_and_leaves_missing_ones_to_the_table() -> None:
    plan = plan_columns("m", "append_new_columns", TABLE, {"id": "int", "name": "string", "x": "date"})
    assert plan.select == ("`id` as `id`", "`name` as `name`", "`x`")
    assert plan.evolve
    assert plan.reshape is None


def test_append_says_so_when_the_batch_only_leaves_columns_out() -> None:
    plan = plan_columns("m", "append_new_columns", TABLE, {"id": "int", "name": "string"})
    assert plan.select == ("`id` as `id`", "`name` as `name`")
    assert plan.evolve


def test_sync_reshapes_the_table_when_columns_go_or_change() -> None:
    plan = plan_columns("m", "sync_all_columns", TABLE, {"id": "string", "name": "string", "x": "date"})
    assert plan.reshape == ("cast(`id` as string) as `id`", "`name`", "cast(null as date) as `x`")
    assert plan.select == ("`id` as `id`", "`name` as `name`", "`x`")


def test_sync_with_new_columns_only_does_not_rewrite_the_table() -> None:
    plan = plan_columns("m", "sync_all_columns", TABLE, {**TABLE, "x": "date"})
    assert plan.evolve
    assert plan.reshape is None


def test_a_configs_column_is_found_without_regard_to_case_and_refused_with_the_nearest_name() -> None:
    assert resolve(["ID"], ["id", "name"], "unique_key", "m") == ["id"]
    with pytest.raises(DbtDatabaseError, match=r"unique_key names the column 'nam'.*did you mean 'name'"):
        resolve(["nam"], ["id", "name"], "unique_key", "m")


def test_an_ordering_field_may_lead_into_a_struct() -> None:
    columns = ["id", "N", "a.b"]
    assert resolve_paths(["n.t"], columns, "ordering_fields", "m") == ["N.t"]
    assert resolve_paths(["`n`.`t`"], columns, "ordering_fields", "m") == ["N.t"]
    assert resolve_paths(["ID", "a.b"], columns, "ordering_fields", "m") == ["id", "a.b"]
    for wrong in ("m.t", "m"):
        with pytest.raises(DbtDatabaseError, match=r"ordering_fields names the column 'm', which the model does not have"):
            resolve_paths([wrong], columns, "ordering_fields", "m")


def test_deletions_are_ordered_by_a_member_of_a_struct() -> None:
    for query in split_deleted("s", ["id", "n", "a.b"], ["id"], ["n.t"], "gone"):
        assert "struct(`n`.`t`)" in query
    assert "struct(`a.b`)" in split_deleted("s", ["id", "a.b"], ["id"], ["a.b"], "gone")[0]
