"""dbt over a warehouse in an object store: `warehouse` and `storage_options` are all that differs, and Spark has no jars for it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakehouse_engine import Lakehouse
from tests.object_store.dbt_store import Store, s3_store, secrets_below
from tests.support.dbt_project import Project

__all__ = ["s3_store"]
pytestmark = pytest.mark.dbt

SPARK = {"spark.driver.memory": "1g", "spark.master": "local[2]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}

WRONG = "V1JPTkdrZXlOb3RTaG93bg=="
SEED = "id,name,changed\n1,one,2026-01-01\n2,two,2026-01-01\n3,three,2026-01-01\n"
MODELS = {
    "plain.sql": "{{ config(materialized='table') }} select id, upper(name) as name from {{ ref('raw') }}",
    "seen.sql": "select id, name from {{ ref('plain') }} where id > 1",
    "cow.sql": "{{ config(materialized='incremental', unique_key='id', partition_by='part') }}"
    " select id, name, id % 2 as part from {{ ref('raw') }}"
    " {% if is_incremental() %} where id > 2 union all select 9, 'nine', 1 {% endif %}",
    "mor.sql": "{{ config(materialized='incremental', unique_key='id', table_type='mor', ordering_fields='changed') }}"
    " select id, {{ \"'again'\" if is_incremental() else 'name' }} as name, changed from {{ ref('raw') }}",
    "schema.yml": "models: [{name: cow, columns: [{name: id, data_tests: [unique, not_null]}]},"
    " {name: seen, columns: [{name: id, data_tests: [not_null]}]}]",
}
SNAPSHOT = (
    "{% snapshot history %}{{ config(unique_key='id', strategy='check', check_cols=['name'], target_schema='s') }}"
    " select id, name from {{ ref('mor') }}{% endsnapshot %}"
)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark's UI is made of: each job, plan and setting."""
    return tmp_path_factory.mktemp("events")


@dataclass(frozen=True)
class Built:
    """The project after two builds; what the first one said, and what it left in two tables."""

    project: Project
    said: str
    first: dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def built(s3_store: Store, events: Path, lakehouse: Lakehouse, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("project")
    told = {**SPARK, "spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": "false"}
    made = Project(folder, {"spark_config": told, "warehouse": s3_store.place("lake"), "storage_options": s3_store.options})
    for name, text in MODELS.items():
        (folder / "models" / name).write_text(text)
    for kind, name, text in (("seeds", "raw.csv", SEED), ("snapshots", "history.sql", SNAPSHOT)):
        (folder / kind).mkdir()
        (folder / kind / name).write_text(text)
    said = made.dbt("build")
    first = {name: rows(lakehouse, name, "id", "name") for name in ("plain", "mor")}
    made.dbt("build", "--exclude", "resource_type:seed")
    return Built(made, said, first)


@pytest.fixture
def project(built: Built) -> Project:
    return built.project


@pytest.fixture(scope="module")
def lakehouse(s3_store: Store) -> Lakehouse:
    return Lakehouse(s3_store.place("lake"), storage_options=s3_store.options)


def rows(lakehouse: Lakehouse, name: str, *columns: str) -> list[tuple[Any, ...]]:
    table = lakehouse.table(f"s.{name}").to_arrow(columns=columns)
    return sorted(zip(*(table.column(column).to_pylist() for column in columns), strict=True))


def test_a_project_is_built_tested_and_built_again(built: Built, lakehouse: Lakehouse) -> None:
    assert "ERROR=0" in built.said
    assert built.first["plain"] == [(1, "ONE"), (2, "TWO"), (3, "THREE")]
    assert built.first["mor"] == [(1, "one"), (2, "two"), (3, "three")]
    assert lakehouse.views("s") == ["s.seen"]
    assert rows(lakehouse, "cow", "id", "name", "part") == [(1, "one", 1), (2, "two", 0), (3, "three", 1), (9, "nine", 1)]
    assert rows(lakehouse, "mor", "id", "name") == [(1, "again"), (2, "again"), (3, "again")]
    assert [action.action.value for action in lakehouse.table("s.mor").timeline.completed()][:2] == ["deltacommit", "deltacommit"]
    history = lakehouse.table("s.history").to_arrow()
    assert sum(value is None for value in history.column("dbt_valid_to").to_pylist()) == 3
    assert history.num_rows == 6


def test_a_shape_that_changed_is_built_anew(project: Project, lakehouse: Lakehouse) -> None:
    model = project.folder / "models" / "plain.sql"
    before = model.read_text()
    model.write_text("{{ config(materialized='table', partition_by='p') }} select id, name, id % 2 as p from {{ ref('raw') }}")
    try:
        project.dbt("run", "--select", "plain")
    finally:
        model.write_text(before)
    assert rows(lakehouse, "plain", "id", "p") == [(1, 1), (2, 0), (3, 1)]
    model.write_text("{{ config(materialized='view') }} select 7 as id, 'v' as name")
    try:
        project.dbt("run", "--select", "plain")
        assert "s.plain" in lakehouse.views("s")
    finally:
        model.write_text(before)
    project.dbt("run", "--select", "plain")
    assert rows(lakehouse, "plain", "id", "name") == [(1, "ONE"), (2, "TWO"), (3, "THREE")]


def test_tables_are_cloned(project: Project, lakehouse: Lakehouse) -> None:
    profiles, before = project.folder / "profiles.yml", (project.folder / "profiles.yml").read_text()
    known = yaml.safe_load(before)
    known["shop"]["outputs"]["other"] = {**known["shop"]["outputs"]["dev"], "schema": "c"}
    profiles.write_text(yaml.safe_dump(known))
    try:
        project.dbt("compile")
        (project.folder / "state").mkdir()
        shutil.copy(project.folder / "target" / "manifest.json", project.folder / "state")
        project.dbt("clone", "--state", "state", "--target", "other", "--select", "plain", "mor")
    finally:
        profiles.write_text(before)
    for name in ("plain", "mor"):
        clone = lakehouse.table(f"c.{name}")
        assert clone.to_arrow(["id", "name"]).sort_by("id").to_pylist() == [
            {"id": key, "name": said} for key, said in rows(lakehouse, name, "id", "name")
        ]
        (write,) = clone.timeline.completed().writes()
        assert clone.state.commit_metadata(write).extra_metadata["lakehouse.clone.source"] == f"s.{name}"
    assert lakehouse.drop_schema("c", cascade=True)


def test_services_are_run_by_operations(project: Project, lakehouse: Lakehouse) -> None:
    project.dbt("run-operation", "compact", "--args", "{model: mor}")
    assert [action.action.value for action in lakehouse.table("s.mor").timeline.completed()][-1] == "commit"
    assert rows(lakehouse, "mor", "id", "name") == [(1, "again"), (2, "again"), (3, "again")]
    project.dbt("run-operation", "savepoint", "--args", "{model: cow, name: kept}")
    project.dbt("show", "--inline", "update s.cow set name = 'gone' where id = 1")
    assert (1, "gone") in rows(lakehouse, "cow", "id", "name")
    project.dbt("run-operation", "restore", "--args", "{model: cow, savepoint: kept}")
    assert (1, "one") in rows(lakehouse, "cow", "id", "name")
    assert "kept" in project.dbt("run-operation", "savepoints", "--args", "{model: cow}")


def test_documentation_and_listings(project: Project) -> None:
    project.dbt("docs", "generate")
    catalog = json.loads((project.folder / "target" / "catalog.json").read_text())
    assert {node["metadata"]["name"] for node in catalog["nodes"].values()} >= {"raw", "plain", "seen", "cow", "mor", "history"}
    shown = project.dbt("show", "--inline", "select count(*) as n, max(name) as m from {{ ref('seen') }}")
    assert "THREE" in shown or "TWO" in shown


def test_an_audited_model_is_published_after_its_tests(project: Project, lakehouse: Lakehouse) -> None:
    model = project.folder / "models" / "audited.sql"
    model.write_text("{{ config(materialized='incremental', unique_key='id', audit=true) }} select id, name from {{ ref('raw') }}")
    (project.folder / "models" / "audited.yml").write_text(
        "models: [{name: audited, columns: [{name: name, data_tests: [{accepted_values: {arguments: {values: [one, two, three]}}}]}]}]"
    )
    try:
        assert "Published s.audited" in project.dbt("build", "--select", "audited")
        assert rows(lakehouse, "audited", "id") == [(1,), (2,), (3,)]
        model.write_text(model.read_text().replace("select id, name", "select id, 'wrong' as name"))
        project.dbt("build", "--select", "audited", fails=True)
        assert rows(lakehouse, "audited", "name") == [("one",), ("three",), ("two",)]
        model.write_text(model.read_text().replace("'wrong'", "'two'"))
        assert "Published s.audited" in project.dbt("build", "--select", "audited")
        assert rows(lakehouse, "audited", "name") == [("two",)] * 3
        assert [entry.path for entry in lakehouse.catalog.storage.walk(".lakehouse")] == []
    finally:
        model.unlink()
        (project.folder / "models" / "audited.yml").unlink()


def test_keys_are_shown_to_nobody(project: Project, events: Path, s3_store: Store, lakehouse: Lakehouse) -> None:
    broken = project.folder / "models" / "broken.sql"
    # What it says of the profile is in the error.
    seen = "{{ target.storage_options | length }} as n, raise_error(\"{{ target }}\") as e"
    broken.write_text("{{ config(materialized='table') }} select " + seen)
    try:
        said = project.dbt("debug") + project.dbt("run", "--log-level", "debug", fails=True)
    finally:
        broken.unlink()
    assert "storage_options" in said
    assert not [secret for secret in s3_store.secrets if secret in said.encode()]
    assert secrets_below(project.folder, s3_store, but=("profiles.yml",)) == []
    assert list(events.iterdir())
    assert secrets_below(events, s3_store) == []
    storage = lakehouse.catalog.storage
    assert [entry.path for entry in storage.walk() if any(secret in storage.read(entry.path) for secret in s3_store.secrets)] == []


def test_wrong_keys_are_an_error_that_does_not_repeat_them(project: Project, s3_store: Store) -> None:
    if not s3_store.asks:
        pytest.skip("moto's server takes any key")
    profiles = project.folder / "profiles.yml"
    before = profiles.read_text()
    profiles.write_text(before.replace(s3_store.options[s3_store.secret_names[-1]], WRONG))
    try:
        said = project.dbt("run", "--log-level", "debug", fails=True)
    finally:
        profiles.write_text(before)
    assert WRONG not in said
    assert "PASS=0" in said or "access is denied" in said
