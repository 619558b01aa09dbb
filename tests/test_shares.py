"""Shares of matrices: a commit has the same one every time, all commits together have everything, and a run says what it had."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.interop.share import VERSIONS, left_to_the_other, without_version
from tests.support import shares
from tests.support.shares import keep_share, share_of

NAMES = [f"case-{number}" for number in range(20)]
COMMITS = [f"{number:040x}" for number in range(300)]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("LAKEHOUSE_CORE", raising=False)
    monkeypatch.setattr(shares, "TOLD", [])
    return shares.TOLD


def share(monkeypatch: pytest.MonkeyPatch, commit: str, matrix: str = "m", size: int = 5) -> list[str]:
    monkeypatch.setattr(shares, "commit_here", lambda: commit)
    return share_of(matrix, NAMES, size)


def test_the_shares_of_all_commits_are_the_whole_matrix(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    found = {tuple(share(monkeypatch, commit)) for commit in COMMITS}
    assert sorted(name for one in found for name in one) == sorted(NAMES)
    assert share(monkeypatch, "c0ffee") == share(monkeypatch, "c0ffee") != []


def test_matrices_turn_independently(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    pairs = {(share(monkeypatch, commit, "m")[0], share(monkeypatch, commit, "n")[0]) for commit in COMMITS}
    assert len(pairs) == 16


def test_a_run_says_which_share_it_had_and_what_runs_the_whole(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    found = share(monkeypatch, "c0ffee")
    assert told == [f"m: 5 of 20: {', '.join(found)} (all of it: make core-full)"]


def test_the_whole_matrix_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    monkeypatch.setenv("LAKEHOUSE_CORE", "all")
    assert share(monkeypatch, "c0ffee") == NAMES
    assert told == []


def item(name: str, version: str | None) -> pytest.Item:
    callspec = SimpleNamespace(params={"hudi": version} if version else {"kind": name})
    return SimpleNamespace(nodeid=f"test_x.py::{name}[{version}]", callspec=callspec)  # type: ignore[return-value]


def test_each_test_has_one_hudi_of_a_commit_and_either_one_over_the_commits() -> None:
    items = [item(name, version) for name in NAMES for version in VERSIONS]
    without = {commit: left_to_the_other(items, commit, without_version) for commit in COMMITS}
    for left_out in without.values():
        assert sorted(map(without_version, left_out)) == sorted(f"test_x.py::{name}[]" for name in NAMES)
    assert {one.nodeid for left_out in without.values() for one in left_out} == {one.nodeid for one in items}


def test_tests_that_know_one_hudi_or_none_always_run() -> None:
    items = [item("only", "0.15.0"), item("none", None), SimpleNamespace(nodeid="test_x.py::plain")]
    assert all(not left_to_the_other(items, commit, without_version) for commit in COMMITS)  # type: ignore[arg-type]


def test_what_is_judged_together_has_one_hudi() -> None:
    items = [item(name, version) for name in NAMES for version in VERSIONS]
    for commit in COMMITS[:20]:
        left_out = left_to_the_other(items, commit, lambda one: "together")
        assert len({one.callspec.params["hudi"] for one in left_out}) == 1  # type: ignore[attr-defined]
        assert len(left_out) == len(NAMES)


FOLDER = Path(__file__).resolve().parent / "spark"


class Item(SimpleNamespace):
    """A test, as far as shares ask."""

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__  # type: ignore[assignment]


def lane(asked: str) -> tuple[list[str], list[str]]:
    """What is kept, and left out, of a lane's tests (two of each class) and one test beside it, where `asked` is on the command line."""
    own = [Item(path=FOLDER / "test_x.py", cls=SimpleNamespace(__name__=name), name=test) for name in NAMES for test in "ab"]
    items = [*own, Item(path=FOLDER.parent / "test_y.py", cls=None, name="beside")]
    left: list[Item] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left.extend(items))
    config = SimpleNamespace(args=[asked], hook=hook)
    keep_share(config, items, FOLDER, "lane", Fraction(1, 4), variable="LAKEHOUSE_LANE", full="make lane-full")  # type: ignore[arg-type]
    return [f"{one.cls.__name__ if one.cls else ''}{one.name}" for one in items], [f"{one.cls.__name__}{one.name}" for one in left]


def test_lane_keeps_a_quarter_of_its_classes_whole_and_all_that_are_asked_for(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    monkeypatch.delenv("LAKEHOUSE_LANE", raising=False)
    kept, left = lane(str(FOLDER.parent))
    assert (len(kept), len(kept) + len(left), kept[-1]) == (11, 41, "beside")
    assert {name[:-1] for name in kept[:-1]}.isdisjoint(name[:-1] for name in left)
    assert len(lane(str(FOLDER / "test_x.py"))[0]) == 41
    monkeypatch.setenv("LAKEHOUSE_LANE", "all")
    assert len(lane(str(FOLDER))[0]) == 41
