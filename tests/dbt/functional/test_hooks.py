"""dbt-tests-adapter: hooks. Postgres' `vacuum`, its quotes and its target keys are replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from dbt.tests.adapter.hooks import test_model_hooks as model_hooks
from dbt.tests.adapter.hooks import test_run_hooks as run_hooks
from dbt.tests.util import run_dbt

from tests.support.dbt_project import Project

FIELDS = (
    "test_state",
    "target_dbname",
    "target_host",
    "target_name",
    "target_schema",
    "target_type",
    "target_user",
    "target_pass",
    "target_threads",
    "run_started_at",
    "invocation_id",
    "thread_id",
)
TABLE = ", ".join(f"{name} {'int' if name == 'target_threads' else 'string'}" for name in FIELDS)


def contexts(project: Any, table: str, state: str) -> list[dict[str, Any]]:
    rows = project.run_sql(f"select {', '.join(FIELDS)} from {project.test_schema}.{table} where test_state = '{state}'", fetch="all")
    return [dict(zip(FIELDS, row, strict=False)) for row in rows]


def check_context(context: dict[str, Any], project: Any, state: str) -> None:
    assert (context["test_state"], context["target_name"], context["target_schema"]) == (state, "default", project.test_schema)
    assert (context["target_type"], context["target_threads"]) == ("lakehouse", 4)
    assert context["run_started_at"]
    assert context["invocation_id"]
    assert context["thread_id"].startswith(("Thread-", "MainThread"))


class ModelHooks:
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        project.run_sql(f"create table {project.test_schema}.on_model_hook ({TABLE})")

    def check_hooks(self, state, project, host, count=1):
        found = contexts(project, "on_model_hook", state)
        assert len(found) == count
        for context in found:
            check_context(context, project, state)


def hooks(pre: str, post: str) -> dict[str, Any]:
    outside = {"sql": "select 1 as outside_of_a_transaction", "transaction": False}
    return {"models": {"test": {pre: [model_hooks.MODEL_PRE_HOOK, outside], post: [outside, model_hooks.MODEL_POST_HOOK]}}}


class TestPrePostModelHooks(ModelHooks, model_hooks.BasePrePostModelHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return hooks("pre-hook", "post-hook")


class TestPrePostModelHooksUnderscores(ModelHooks, model_hooks.BasePrePostModelHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return hooks("pre_hook", "post_hook")


class TestHookRefs(ModelHooks, model_hooks.BaseHookRefs):
    pass


class TestPrePostModelHooksInConfig(ModelHooks, model_hooks.BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigWithCount(ModelHooks, model_hooks.BasePrePostModelHooksInConfigWithCount):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return hooks("pre-hook", "post-hook")


class TestPrePostModelHooksInConfigKwargs(ModelHooks, model_hooks.BasePrePostModelHooksInConfigKwargs):
    pass


class TestPrePostModelHooksOnSeeds(model_hooks.BasePrePostModelHooksOnSeeds):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {
            "seed-paths": ["seeds"],
            "models": {},
            "seeds": {
                "post-hook": [
                    "alter table {{ this }} add column new_col int",
                    "update {{ this }} set new_col = 1",
                    "select cast(null as {{ dbt.type_int() }}) as id",
                ],
                "quote_columns": False,
            },
        }


class TestHooksRefsOnSeeds(model_hooks.BaseHooksRefsOnSeeds):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixed(model_hooks.BasePrePostModelHooksOnSeedsPlusPrefixed):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(model_hooks.BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    pass


class TestPrePostModelHooksOnSnapshots(model_hooks.BasePrePostModelHooksOnSnapshots):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(model_hooks.BasePrePostSnapshotHooksInConfigKwargs):
    pass


class TestDuplicateHooksInConfigs(model_hooks.BaseDuplicateHooksInConfigs):
    pass


class TestPrePostRunHooks(run_hooks.BasePrePostRunHooks):
    @pytest.fixture
    def setUp(self, project, monkeypatch):
        for table in ("on_run_hook", "schemas", "db_schemas"):
            project.run_sql(f"drop table if exists {project.test_schema}.{table}")
        project.run_sql(f"create table {project.test_schema}.on_run_hook ({TABLE})")
        monkeypatch.setenv("TERM_TEST", "TESTING")

    @pytest.fixture(scope="class")
    def project_config_update(self):
        schema_values = "{% for schema in schemas %}('{{ schema }}'){% if not loop.last %},{% endif %}{% endfor %}"
        return {
            "on-run-start": [
                "{{ custom_run_hook('start', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.start_hook_order_test ( id int )",
                "drop table {{ target.schema }}.start_hook_order_test",
                "{{ log(env_var('TERM_TEST'), info=True) }}",
            ],
            "on-run-end": [
                "{{ custom_run_hook('end', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.end_hook_order_test ( id int )",
                "drop table {{ target.schema }}.end_hook_order_test",
                "create table {{ target.schema }}.schemas ( schema string )",
                "insert into {{ target.schema }}.schemas (schema) values " + schema_values,
            ],
            "seeds": {"quote_columns": False},
        }

    def check_hooks(self, state, project, host):
        found = contexts(project, "on_run_hook", state)
        assert len(found) == 1
        check_context(found[0], project, state)

    def assert_used_schemas(self, project):
        assert project.run_sql(f"select * from {project.test_schema}.schemas", fetch="all") == [(project.test_schema,)]


class TestAfterRunHooks(run_hooks.BaseAfterRunHooks):
    pass


class TestHooksThatChangeTheModelsOwnTable:
    """What is there is looked up after the hooks: dbt's cache knows nothing of them."""

    MAKE = "create table if not exists {{ this }} (id int, gone string)"
    DROP, VIEW = "drop table if exists {{ this }}", "create or replace view {{ this }} as select 0 as id"
    MODELS: ClassVar = {
        "a_table": f"materialized='table', pre_hook='{DROP}'",
        "a_table_of_its_own": f"materialized='table', pre_hook='{MAKE}'",
        "a_table_for_a_view": f"materialized='table', pre_hook=['{DROP}', '{VIEW}']",
        "an_increment": f"materialized='incremental', unique_key='id', pre_hook='{DROP}'",
        "with_deletions": f"materialized='incremental', unique_key='id', delete_condition='id = 2', pre_hook='{DROP}'",
        "a_view_then": f"materialized='incremental', pre_hook=['{DROP}', '{VIEW}']",
    }

    @pytest.fixture(scope="class")
    def models(self):
        rows = " select 1 as id, '{{ invocation_id }}' as run"
        return {f"{name}.sql": "{{ config(" + config + ") }}" + rows for name, config in self.MODELS.items()}

    @pytest.fixture(scope="class")
    def seeds(self):
        return {"a_seed.csv": "id,name\n1,x\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"seeds": {"+pre-hook": self.MAKE}}

    def test_a_seed_takes_the_place_of_what_its_hook_made(self, project):
        run_dbt(["seed"])
        found = project.run_sql(f"select id, name from {project.test_schema}.a_seed", fetch="all")
        assert [tuple(row) for row in found] == [(1, "x")]

    def test_each_run_builds_it(self, project):
        for _ in range(2):
            run_dbt(["run"])
            found = [project.run_sql(f"select id, run from {project.test_schema}.{name}", fetch="all") for name in self.MODELS]
            assert [len(rows) for rows in found] == [1] * len(self.MODELS)
            assert len({row[1] for rows in found for row in rows}) == 1


def test_errors_of_hooks_say_that_they_are_and_those_of_the_model_do_not(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Project(tmp_path, spark_keys)
    for name, text in {
        "post": "{{ config(materialized='table', post_hook='insert into {{ this }} select idd from {{ this }}') }} select 1 as id",
        "pre": "{{ config(materialized='table', pre_hook='{{ no_macro() }}') }} select 1 as id",
        "own": "{{ config(materialized='table', pre_hook='select 1') }} select 1 as id from s.nothing",
    }.items():
        (shop.folder / "models" / f"{name}.sql").write_text(text)
    shown = shop.dbt("run", fails=True)
    assert "in a post-hook: [UNRESOLVED_COLUMN" in shown
    assert "in a pre-hook: 'no_macro' is undefined" in shown
    assert "\n  [TABLE_OR_VIEW_NOT_FOUND] there is no table or view s.nothing" in shown
