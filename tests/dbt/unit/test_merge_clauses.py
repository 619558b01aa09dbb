"""Clauses of a merge as configs: what they mean, which are refused, and the SQL that they become."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.config.clauses import CLAUSE_KEYS, MergeClauses
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from dbt.adapters.lakehouse.writing.clauses import assigned_columns, rows_by_source, rows_to_write


def clauses(**values: Any) -> MergeClauses:
    return ModelConfig.from_config("m", {"materialized": "incremental", "unique_key": "id", **values}).clauses


def test_a_model_without_clauses_has_none() -> None:
    assert not clauses()
    assert not clauses(skip_matched_step=False, source_alias="s", matched_condition=" ")
    assert clauses(source_alias="s").source == "s"


@pytest.mark.parametrize("action", ["delete", " DELETE\n"])
def test_stored_rows_without_one_in_the_model_may_be_deleted(action: str) -> None:
    found = clauses(not_matched_by_source_action=action, not_matched_by_source_condition="a = 1")
    assert (found.by_source, found.assignments, found.by_source_condition) == ("delete", (), "a = 1")


def test_an_update_names_columns_with_and_without_the_alias_of_the_target() -> None:
    text = "UPDATE SET DBT_INTERNAL_DEST.a = concat('x, y', b), `b c` = DBT_INTERNAL_DEST.n + 1"
    found = clauses(not_matched_by_source_action=text)
    assert (found.by_source, found.assignments) == ("update", (("a", "concat('x, y', b)"), ("b c", "DBT_INTERNAL_DEST.n + 1")))
    assert clauses(target_alias="t", not_matched_by_source_action="update set t.a = t.b").assignments == (("a", "t.b"),)


REFUSED = [
    ({"not_matched_by_source_action": "remove"}, "is 'delete' or 'update set"),
    ({"not_matched_by_source_action": "update set *"}, "is 'delete' or 'update set"),
    ({"not_matched_by_source_action": "insert *"}, "is 'delete' or 'update set"),
    ({"not_matched_by_source_action": "delete when matched then delete"}, "is 'delete' or 'update set"),
    ({"not_matched_by_source_action": "update set a = 1, a = 2"}, "assigned twice"),
    ({"not_matched_by_source_action": "update set n.a = 1"}, "'n.a' is inside of one"),
    ({"not_matched_by_source_action": "update set ID = 1"}, "sets 'ID', which is in unique_key"),
    ({"not_matched_by_source_action": "update set day = 1", "partition_by": "day"}, "sets 'day', which is in partition_by"),
    ({"not_matched_by_source_action": "delete", "incremental_predicates": ["a > 1"]}, "leave them out"),
    ({"not_matched_by_source_action": "delete", "predicates": "a > 1"}, "leave them out"),
    ({"not_matched_by_source_action": True}, "is a text in SQL, not bool"),
    ({"not_matched_by_source_condition": "a > 1"}, "that one is not given"),
    ({"matched_condition": ["a"]}, "is a text in SQL, not list"),
    ({"skip_matched_step": "false"}, "true or false"),
    ({"skip_matched_step": True, "matched_condition": "a"}, "matched_condition is about stored rows"),
    ({"skip_matched_step": True, "delete_condition": "a"}, "delete_condition is about stored rows"),
    ({"skip_matched_step": True, "merge_update_columns": "a"}, "merge_update_columns is about stored rows"),
    ({"skip_not_matched_step": True, "not_matched_condition": "a"}, "not_matched_condition is about new rows"),
    ({"skip_matched_step": True, "skip_not_matched_step": True}, "merge would do nothing"),
    ({"source_alias": "dbt_internal_dest"}, "give them two names"),
    ({"target_alias": "a b"}, "is not a plain name"),
]


@pytest.mark.parametrize(("values", "said"), REFUSED)
def test_clauses_that_cannot_be_right_are_refused_by_name(values: dict[str, Any], said: str) -> None:
    with pytest.raises(DbtConfigError, match=said) as found:
        clauses(**values)
    assert "m: " in str(found.value)


@pytest.mark.parametrize("key", CLAUSE_KEYS)
def test_clauses_belong_to_the_strategy_merge_or_one_of_the_projects_own(key: str) -> None:
    value = True if key.startswith("skip") else "delete"
    with pytest.raises(DbtConfigError, match=f"{key} belongs to incremental_strategy 'merge'"):
        clauses(incremental_strategy="delete+insert", **{key: value})
    assert not clauses(incremental_strategy="mine", **{key: value})


def test_each_row_of_the_model_is_a_matched_one_or_a_new_one() -> None:
    found = rows_to_write("s", "t", ["id", "v"], ["id"], clauses(matched_condition="S.v > D.v", source_alias="S", target_alias="D"))
    assert found == (
        "select `S`.`id`, `S`.`v` from s as `S` left semi join t as `D` on `S`.`id` <=> `D`.`id` and (S.v > D.v) union all "
        "select `S`.`id`, `S`.`v` from s as `S` left anti join t as `D` on `S`.`id` <=> `D`.`id`"
    )
    skipped = rows_to_write("s", "t", ["id"], ["id"], clauses(skip_matched_step=True, not_matched_condition="a or b"))
    assert "semi" not in skipped
    assert skipped.endswith(" where (a or b)")
    both = clauses(skip_matched_step=True, skip_not_matched_step=True, not_matched_by_source_action="delete")
    assert rows_to_write("s", "t", ["id"], ["id"], both).endswith(" where false")


def test_stored_rows_keep_the_columns_that_the_action_does_not_set() -> None:
    one = clauses(not_matched_by_source_action="update set V = v or w", not_matched_by_source_condition="a or b", target_alias="t")
    expressions = assigned_columns({"id": "int", "v": "boolean"}, one)
    assert expressions == ["`t`.`id` as `id`", "cast((v or w) as boolean) as `v`"]
    assert rows_by_source("s", "x", expressions, ["id"], one).endswith(
        "from x as `t` left anti join s as `DBT_INTERNAL_SOURCE` on `t`.`id` <=> `DBT_INTERNAL_SOURCE`.`id` where (a or b)"
    )
