"""dbt commands that need no data: they start no JVM, do not even load PySpark, and refuse wrong configs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUN = """
import sys
from dbt.cli.main import dbtRunner
arguments, succeeded = sys.argv[1:], True
for command in arguments[0].split(","):
    result = dbtRunner().invoke([command, *arguments[1:]])
    print("EXCEPTION", result.exception)
    print("PYSPARK", "pyspark" in sys.modules, "AFTER", command)
    succeeded = succeeded and result.success
sys.exit(0 if succeeded else 1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text("name: demo\nversion: '1.0'\nprofile: demo\nflags: {send_anonymous_usage_stats: false}\n")
    (tmp_path / "profiles.yml").write_text("demo: {target: dev, outputs: {dev: {type: lakehouse, schema: analytics}}}\n")
    (tmp_path / "models" / "orders.sql").write_text("select 1 as id")
    (tmp_path / "models" / "facts.sql").write_text(
        "{{ config(materialized='incremental', unique_key='id', ordering_fields='id') }} select * from {{ ref('orders') }}"
    )
    return tmp_path


def dbt(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": "/nowhere", "DBT_PROFILES_DIR": str(project)}
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_commands_without_data_do_not_load_pyspark_and_leave_nothing(project: Path) -> None:
    commands = ("parse", "ls", "compile")
    answer = dbt(project, ",".join(commands))
    assert answer.returncode == 0, answer.stdout
    for command in commands:
        assert f"PYSPARK False AFTER {command}" in answer.stdout
    assert {path.name for path in project.iterdir()} <= {"models", "dbt_project.yml", "profiles.yml", "target", "logs"}


def test_tuning_of_hudi_is_noted_once_and_configs_of_tests_are_their_own(project: Path) -> None:
    key = "hoodie.upsert.shuffle.parallelism"
    for name in ("facts", "more"):
        (project / "models" / f"{name}.sql").write_text("{{ config(materialized='table', hoodie={'" + key + "': 4}) }} select 1 as id")
    (project / "tests").mkdir()
    (project / "tests" / "none.sql").write_text("{{ config(hoodie='text') }} select * from {{ ref('facts') }} where id > 1")
    answer = dbt(project, "parse")
    assert answer.returncode == 0, answer.stdout
    assert answer.stdout.count(f"without effect here, as they tune Hudi's own execution: {key}") == 1


def test_a_mistyped_config_is_refused_with_the_models_name(project: Path) -> None:
    (project / "models" / "facts.sql").write_text("{{ config(materialized='table', parttion_by='id') }} select 1 as id")
    answer = dbt(project, "parse,compile")
    assert answer.returncode == 1
    refusal = "EXCEPTION Runtime Error"
    wanted = "model 'facts' (models/facts.sql): the config 'parttion_by' is not known; did you mean 'partition_by'?"
    parsed, _, compiled = answer.stdout.partition("AFTER parse")
    for said in (parsed, compiled):
        assert refusal in said
        assert wanted in said


def test_all_wrong_configs_of_a_project_are_listed_by_one_parse(project: Path) -> None:
    hoodie = "{'hoodie.parquet.max.file.sze': 1, 'hoodie.clean.polcy': 'x'}"
    (project / "models" / "facts.sql").write_text(
        "{{ config(materialized='table', parttion_by='id', table_type='cwo', audit='yes', hoodie=" + hoodie + ") }} select 1 as id"
    )
    (project / "models" / "kept.sql").write_text(
        "{{ config(materialized='incremental', unique_key='idd', merge_update_columns=['nme'], on_schema_change='fail') }}"
        "select 1 as id, 2 as name"
    )
    columns = "columns: [{name: id, data_type: int}, {name: name, data_type: int}]"
    (project / "models" / "kept.yml").write_text(f"models: [{{name: kept, config: {{contract: {{enforced: true}}}}, {columns}}}]")
    (project / "models" / "view.py").write_text("def model(dbt, session):\n    dbt.config(materialized='view')\n    return session")
    (project / "models" / "sources.yml").write_text("sources: [{name: raw, tables: [{name: a, config: {meta: {lakehouse: csv}}}]}]")
    answer = dbt(project, "parse")
    assert answer.returncode == 1
    for words in (
        "source 'raw.a' (models/sources.yml): meta.lakehouse is a mapping",
        "model 'view' (models/view.py): a Python model is a table, incremental or external, not 'view'",
        "model 'facts' (models/facts.sql): the config 'parttion_by' is not known",
        "model 'facts' (models/facts.sql): table_type 'cwo'",
        "model 'facts' (models/facts.sql): audit is true or false",
        "model 'facts' (models/facts.sql): the engine does not act on the option 'hoodie.parquet.max.file.sze'",
        "model 'facts' (models/facts.sql): the engine does not act on the option 'hoodie.clean.polcy'",
        "model 'kept' (models/kept.sql): unique_key names the column 'idd', which the contract does not have; did you mean 'id'?",
        "model 'kept' (models/kept.sql): merge_update_columns names the column 'nme'",
    ):
        assert words in answer.stdout, answer.stdout


@pytest.mark.parametrize("threads", ["0", "-1"])
def test_threads_that_run_nothing_are_refused(project: Path, threads: str) -> None:
    answer = dbt(project, "parse", "--threads", threads)
    assert answer.returncode == 1
    assert f"threads is 1 or more, not {threads}" in answer.stdout


def test_a_database_of_a_source_is_refused_with_the_sources_name(project: Path) -> None:
    (project / "models" / "sources.yml").write_text("sources: [{name: crm, database: legacy, tables: [{name: users}]}]")
    (project / "models" / "orders.sql").write_text("select * from {{ source('crm', 'users') }}")
    answer = dbt(project, "parse")
    assert answer.returncode == 1
    assert "crm.users: a warehouse has no databases, but 'legacy' is given as one" in answer.stdout


@pytest.mark.parametrize("kind", ["table", "incremental", "view", "ephemeral"])
def test_a_database_of_a_model_is_refused_but_the_catalog(project: Path, kind: str) -> None:
    model = "{{ config(materialized='KIND', unique_key='id', database=NAME) }} select 1 as id".replace("KIND", kind)
    (project / "models" / "facts.sql").write_text(model.replace("NAME", "'legacy'"))
    answer = dbt(project, "parse")
    assert answer.returncode == 1
    assert "facts: a warehouse has no databases, but 'legacy' is given as one" in answer.stdout
    (project / "models" / "facts.sql").write_text(model.replace("NAME", "target.database"))
    assert "has no databases" not in dbt(project, "parse").stdout


def test_a_mistyped_option_of_the_profile_is_refused_once(project: Path) -> None:
    target = "{type: lakehouse, schema: analytics, hoodie: {hoodie.clean.commits.retaned: 3}}"
    (project / "profiles.yml").write_text(f"demo: {{target: dev, outputs: {{dev: {target}}}}}\n")
    answer = dbt(project, "parse")
    assert answer.returncode == 1
    assert "hoodie of the profile: the engine does not act on the option 'hoodie.clean.commits.retaned'" in answer.stdout
    assert "model '" not in answer.stdout


def test_services_that_contradict_each_other_are_refused_with_the_profile_counted_in(project: Path) -> None:
    text = "{{ config(materialized='table', archiving={'min_commits': 5, 'max_commits': 6}) }} select 1 as id"
    (project / "models" / "facts.sql").write_text(text)
    answer = dbt(project, "parse")
    assert answer.returncode == 1
    assert "archiving min_commits=5 is not more than hoodie.clean.commits.retained=10" in answer.stdout
    target = "{type: lakehouse, schema: analytics, hoodie: {hoodie.clean.commits.retained: 4}}"
    (project / "profiles.yml").write_text(f"demo: {{target: dev, outputs: {{dev: {target}}}}}\n")
    assert dbt(project, "parse").returncode == 0


def test_values_of_a_service_are_told_by_the_names_that_its_config_has(project: Path) -> None:
    services = "table_type='mor', compaction={'commits': 0, 'mode': 'async'}, archiving={'max_commits': 'many'}"
    text = "{{ config(materialized='table', SERVICES, hoodie={'hoodie.keep.max.commits': 'few'}) }} select 1 as id"
    (project / "models" / "facts.sql").write_text(text.replace("SERVICES", services))
    answer = dbt(project, "parse")
    assert answer.returncode == 1
    assert "facts.sql): compaction commits='0' does not parse" in answer.stdout
    assert "facts.sql): hoodie.keep.max.commits='few' does not parse" in answer.stdout


def test_missing_java_is_explained_when_data_is_needed(project: Path) -> None:
    answer = dbt(project, "show", "--inline", "select 1 as id")
    assert answer.returncode == 1
    assert "Spark needs Java 17 or newer" in answer.stdout
    assert "(JAVA_HOME is /nowhere, and there is no /nowhere/bin/java)" in answer.stdout
