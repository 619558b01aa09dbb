"""Hostile texts where they become SQL, or come through dbt's command line: a canary table stays as it is, and no secret is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from tests.support.hostile_texts import PAYLOADS

SECRET = "the-canary-sings"
ORDERS = """
{{ config(materialized='incremental', unique_key='id', persist_docs={'relation': true, 'columns': true},
          delete_condition=var('condition', none), incremental_predicates=var('predicate', none)) }}
select cast(id as int) as id, 'kept' as note from range(3)
"""
CANARY = "{{ config(materialized='table') }} select 'canary' as note"
ENDS_A_LITERAL = (
    *("quote", "quote, statement", "escaped quote", "closing parenthesis", "union", "sub-query"),
    *("nul", "typographic quotes"),
)
MORE_THAN_A_CONDITION = (
    *("true; drop table {schema}.canary", "true) ; delete from {schema}.canary where (true", "true union all select 1"),
    *("/* true", "'", "`", "{{ 1 }}"),
)


class TestHostileTexts:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        columns = [{"name": "note", "description": PAYLOADS["newline"]}]
        described = [{"name": "orders", "description": PAYLOADS["quote, statement"], "columns": columns}]
        return {"orders.sql": ORDERS, "canary.sql": CANARY, "schema.yml": yaml.safe_dump({"models": described})}

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["run"])

    @pytest.fixture(autouse=True)
    def canary(self, project: Any, warehouse: str, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setenv("CANARY_SECRET", SECRET)
        before = {name: self.history(warehouse, project, name) for name in ("canary", "orders")}
        yield
        assert self.history(warehouse, project, "canary") == before["canary"]
        rows = HoodieTable(LocalStorage(f"{warehouse}/{project.test_schema}/orders")).to_arrow().to_pylist()
        assert sorted((row["id"], row["note"]) for row in rows) == [(0, "kept"), (1, "kept"), (2, "kept")]

    @staticmethod
    def history(warehouse: str, project: Any, name: str) -> list[str]:
        return [one.instant for one in HoodieTable(LocalStorage(f"{warehouse}/{project.test_schema}/{name}")).history()]

    @pytest.mark.parametrize("name", ENDS_A_LITERAL)
    @pytest.mark.parametrize("call", ["at(ref('orders'), var('point'))", "changes(ref('orders'), begin=var('point'))"])
    def test_a_point_in_history_is_never_part_of_the_statement(self, project, call, name):
        query = f"select * from {{{{ lakehouse.{call} }}}}"
        with pytest.raises(DbtRuntimeError, match="is no point in time"):
            run_dbt(["show", "--inline", query, "--vars", json.dumps({"point": PAYLOADS[name]})])

    @pytest.mark.parametrize("text", MORE_THAN_A_CONDITION)
    @pytest.mark.parametrize("key", ["condition", "predicate"])
    def test_a_condition_is_one_expression(self, project, key, text):
        given = json.dumps({key: text.replace("{schema}", project.test_schema)})
        run_dbt_and_capture(["run", "--select", "orders", "--vars", given], expect_pass=False)

    @pytest.mark.parametrize("name", ["jinja", "jinja, statement", "jinja, secret", "jinja, classes", "yaml", "quote, statement"])
    def test_an_argument_of_the_command_line_is_not_rendered_again(self, project, warehouse, name):
        arguments = {"model": "orders", "comment": PAYLOADS[name]}
        _, said = run_dbt_and_capture(["run-operation", "savepoint", "--args", json.dumps(arguments)])
        assert SECRET not in said
        table = HoodieTable(LocalStorage(f"{warehouse}/{project.test_schema}/orders"))
        made = list(table.savepoints())
        assert [one.comment for one in made] == [PAYLOADS[name]]
        table.delete_savepoint(made[0].instant)

    def test_descriptions_are_kept_as_they_are(self, project):
        rows = run_dbt(["show", "--inline", f"select comment from information_schema.tables where table_schema = '{project.test_schema}'"])
        assert PAYLOADS["quote, statement"] in [row[0] for row in rows.results[0].agate_table.rows]


class TestViewsThatCannotBe:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "twice.sql": "select 1 as a, 2 as A",
            "dots.sql": "{{ config(alias='..') }} select 1 as a",
            "slash.sql": "{{ config(alias='a/b') }} select 1 as a",
            "long.sql": f"{{{{ config(alias='{'v' * 240}') }}}} select 1 as a",
        }

    def test_they_are_refused_by_name(self, project: Any) -> None:
        results = {result.node.name: result.message for result in run_dbt(["run"], expect_pass=False)}
        assert "the columns ['a', 'A'] of the view" in results.pop("twice")
        assert all("cannot be the name of a relation" in message for message in results.values()), results
