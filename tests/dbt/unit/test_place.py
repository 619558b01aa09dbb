"""Where a relative warehouse is: in the project's directory, whatever directory dbt is started in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.lakehouse.config.place import Place
from dbt.adapters.lakehouse.credentials import LakehouseCredentials

ROOT = Path(__file__).resolve().parents[3]
RUN = """
import sys
from dbt.cli.main import dbtRunner
result = dbtRunner().invoke(sys.argv[1:])
print("EXCEPTION", result.exception)
sys.exit(0 if result.success else 1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "models").mkdir(parents=True)
    (folder / "macros").mkdir()
    (folder / "dbt_project.yml").write_text("name: demo\nversion: '1.0'\nprofile: demo\nflags: {send_anonymous_usage_stats: false}\n")
    (folder / "macros" / "make.sql").write_text(
        "{% macro make() %}{% do adapter.create_schema(api.Relation.create(schema='made')) %}"
        "{{ print('TARGET ' ~ target.warehouse) }}{% endmacro %}"
    )
    return folder


def profile(project: Path, **keys: str) -> None:
    given = "".join(f", {key}: {value}" for key, value in keys.items())
    text = f"demo: {{target: dev, outputs: {{dev: {{type: lakehouse, schema: analytics{given}}}}}}}\n"
    (project.parent / "profiles.yml").write_text(text)


def dbt(start: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """dbt started in a directory; there is no Java."""
    home = {"PYTHONPATH": str(ROOT), "JAVA_HOME": "/nowhere", "DBT_PROFILES_DIR": str(_home(start))}
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(
        command, cwd=start, env={**os.environ, **home, **variables}, capture_output=True, text=True, timeout=120, check=False
    )


def _home(start: Path) -> Path:
    return next(folder for folder in (start, *start.parents) if (folder / "profiles.yml").exists())


def made(folder: Path) -> bool:
    return (folder / "made" / ".schema.json").exists()


def test_one_warehouse_is_used_from_every_directory(project: Path) -> None:
    profile(project)
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    for start, more, variables in (
        (elsewhere, ("--project-dir", str(project)), {}),
        (elsewhere, (), {"DBT_PROJECT_DIR": "../shop"}),
        (project / "models", (), {}),
        (project, (), {}),
    ):
        answer = dbt(start, "run-operation", "make", *more, **variables)
        assert answer.returncode == 0, answer.stdout
        assert f"TARGET {project / 'lakehouse'}" in answer.stdout
        assert "WARNING" not in answer.stdout.upper().replace("0 WARNING", "")
    assert made(project / "lakehouse")
    assert not [path for path in project.parent.rglob("lakehouse") if path != project / "lakehouse"]


def test_warehouse_that_was_made_where_dbt_is_started_is_kept_with_a_warning(project: Path) -> None:
    profile(project)
    started = project / "models"
    (started / "lakehouse" / "s").mkdir(parents=True)
    (started / "lakehouse" / "s" / ".schema.json").write_text("{}")
    answer = dbt(started, "run-operation", "make")
    assert made(started / "lakehouse")
    assert f"The warehouse {started / 'lakehouse'} is used" in answer.stdout
    assert f"it belongs at {project / 'lakehouse'}" in answer.stdout.replace("\n", "")


def test_folder_of_the_name_that_is_no_warehouse_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "start" / "lake" / "notes").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "start")
    assert Place.of("lake", tmp_path / "shop") == Place(tmp_path / "shop" / "lake")
    (tmp_path / "start" / "lake" / "s" / "t" / ".hoodie").mkdir(parents=True)
    (tmp_path / "shop" / "lake" / "s" / "t" / ".hoodie").mkdir(parents=True)
    kept = Place.of("lake", tmp_path / "shop")
    assert kept.path == tmp_path / "start" / "lake"
    assert f"another one, at {tmp_path / 'shop' / 'lake'}, is not used" in (kept.warning or "")


def test_absolute_paths_and_addresses_are_the_same_for_every_project(tmp_path: Path) -> None:
    for given in (str(tmp_path / "lake"), "s3://bucket/lake"):
        credentials = LakehouseCredentials.from_dict({"schema": "s", "warehouse": given})
        assert credentials.settle(tmp_path / "shop") is None
        assert credentials.warehouse == given


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")
def test_debug_and_first_use_say_what_is_wrong_with_the_place(project: Path) -> None:
    profile(project, warehouse="/proc/x")
    for command in (("debug",), ("run-operation", "make")):
        answer = dbt(project, *command)
        assert answer.returncode == 1
        assert "/proc/x cannot be a warehouse: no folder can be made in /proc" in answer.stdout
