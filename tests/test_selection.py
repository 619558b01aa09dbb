"""What a run of limited time has: smoke always, then what is near the change, the rest in turn."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import selection
from tests.support.reach import FAR, HOME, NEAR, OWN, changed_files, distances
from tests.support.selection import Durations, Unit, choose
from tests.support.smoke import SMOKE

COMMITS = [f"{number:040x}" for number in range(100)]
FAR_UNITS = [Unit(f"far-{number}", 10.0, False, FAR) for number in range(20)]


def test_smoke_is_always_run() -> None:
    units = [Unit("smoke", 50.0, True, FAR), *FAR_UNITS]
    assert choose(units, 5.0, "c0ffee") == {"smoke"}


@pytest.mark.parametrize("name", SMOKE)
def test_what_is_smoke_is_there(name: str) -> None:
    file, *path = name.partition("[")[0].split("::")
    text = (selection.ROOT / file).read_text(encoding="utf-8")
    assert all(f"class {one}(" in text or f"class {one}:" in text or f"def {one}(" in text for one in path)


def test_near_tests_come_before_far_ones_and_smoke_before_both() -> None:
    units = [Unit("smoke", 10.0, True, FAR), Unit("near", 10.0, False, 1), Unit("nearer", 10.0, False, 0), *FAR_UNITS]
    for commit in COMMITS:
        assert choose(units, 20.0, commit) == {"smoke", "nearer"}
        assert choose(units, 30.0, commit) == {"smoke", "nearer", "near"}


def test_far_tests_turn_with_the_commit_and_all_of_them_are_run_over_the_commits() -> None:
    chosen = [choose(FAR_UNITS, 40.0, commit) for commit in COMMITS]
    assert {len(one) for one in chosen} == {4}
    assert set().union(*chosen) == {unit.name for unit in FAR_UNITS}
    assert choose(FAR_UNITS, 40.0, COMMITS[0]) == chosen[0]


def test_a_unit_that_is_longer_than_what_is_left_makes_room_for_shorter_ones() -> None:
    units = [Unit("long", 100.0, False, 0), Unit("short", 1.0, False, FAR)]
    assert choose(units, 10.0, "c0ffee") == {"short"}


def test_unknown_durations_are_those_of_the_nearest_folder() -> None:
    known = Durations({"tests/a/test_x.py::test_one": 3.0, "tests/a/test_y.py::test_two": 5.0, "tests/b/test_z.py::test_three": 7.0})
    assert known.of("tests/a/test_x.py::test_one[cow]") == 3.0
    assert known.of("tests/a/test_x.py::test_new") == 3.0
    assert known.of("tests/a/test_new.py::test_new") == 4.0
    assert known.of("tests/c/test_new.py::test_new") == 5.0
    assert known.of("elsewhere/test_new.py::test_new") == selection.UNKNOWN


def test_recorded_durations_are_means_and_replace_only_what_was_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "DURATIONS", tmp_path / "durations.json")
    Durations({"tests/test_kept.py::test_a": 9.0, "tests/test_x.py::test_b": 9.0}).save({"tests/test_x.py::test_b": [1.0, 2.0]})
    assert json.loads((tmp_path / "durations.json").read_text()) == {"tests/test_kept.py::test_a": 9.0, "tests/test_x.py::test_b": 1.5}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "lakehouse_engine/low.py": "",
        "lakehouse_engine/high.py": "from lakehouse_engine.low import thing",
        "lakehouse_engine/lakehouse.py": "from lakehouse_engine import high",
        "tests/conftest.py": "",
        "tests/test_low.py": "from lakehouse_engine import low",
        "tests/test_high.py": "from lakehouse_engine.high import thing",
        "tests/test_other.py": "import json",
        "tests/spark/test_sql.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_distance_is_the_number_of_imports_from_the_test_to_the_change(project: Path) -> None:
    tests = ["tests/test_low.py", "tests/test_high.py", "tests/test_other.py", "tests/spark/test_sql.py"]
    assert list(distances(tests, ["lakehouse_engine/low.py"], project).values()) == [1, 2, FAR, 3]
    assert list(distances(tests, ["tests/test_other.py"], project).values()) == [FAR, FAR, 0, FAR]
    assert list(distances(tests, ["tests/conftest.py"], project).values()) == [1, 1, 1, 1]
    assert list(distances(tests, ["docs/plan.md"], project).values()) == [FAR] * 4


@pytest.mark.parametrize(
    ("changed", "near"),
    [
        ("lakehouse_engine/repair/repairs/mend.py", ["tests/unit/repair/test_repair.py"]),
        ("dbt/adapters/lakehouse/config/nothing.py", ["tests/dbt/unit/test_keys.py"]),
        ("lakehouse_engine/nothing.py", []),
    ],
)
def test_tests_in_the_folder_of_a_changed_modules_layer_are_near_whatever_they_import(project: Path, changed: str, near: list[str]) -> None:
    tests = ["tests/unit/repair/test_repair.py", "tests/unit/undo/test_restore.py", "tests/dbt/unit/test_keys.py", "tests/test_other.py"]
    assert [test for test, distance in distances(tests, [changed], project).items() if distance <= NEAR] == near


def test_a_test_that_is_named_after_a_changed_module_of_its_layer_comes_first(project: Path) -> None:
    tests = ["tests/unit/write/test_placing.py", "tests/unit/write/test_writes.py", "tests/unit/read/test_placing.py"]
    found = distances(tests, ["lakehouse_engine/write/plan/placing.py"], project)
    assert list(found.values()) == [OWN, HOME, FAR]


def test_changed_files_are_those_of_the_last_day_and_those_that_are_not_committed(tmp_path: Path) -> None:
    def git(*arguments: str, when: str = "2026-01-01T00:00:00Z") -> None:
        environment = {"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, env=environment)

    git("init")
    for name, when in (("old", "2026-01-01T00:00:00Z"), ("new", "2026-01-09T08:00:00Z"), ("newest", "2026-01-09T10:00:00Z")):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-m", name, when=when)
    (tmp_path / "old").write_text("changed")
    assert changed_files(tmp_path) == ["new", "newest", "old"]
