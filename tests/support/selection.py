"""Which tests a run has when its time is limited.

`--seconds N` limits a run of pytest to what takes about N seconds by the recorded durations: first the tests of `smoke.py`,
then the others, those nearest to the changed files first. Which of equally near ones are taken turns with the commit, so that all are
run over the commits. Without `--seconds` every collected test is run. `--record` writes the durations of a run into
`tests/durations.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.commit import commit_here
from tests.support.reach import FAR, NEAR, changed_files, distances
from tests.support.smoke import is_smoke

ROOT = Path(__file__).resolve().parents[2]
DURATIONS = ROOT / "tests" / "durations.json"
SHORTEST = 0.05
"""Seconds; durations below are not recorded, and taken for this."""
UNKNOWN = 1.0
"""Seconds of a test of which nothing is known, nor of any other in its folder."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("selection")
    group.addoption("--seconds", type=float, default=None, help="limit of the run: smoke first, then what is nearest to the change")
    group.addoption("--changed", default=None, help="changed files, separated by blanks (default: those of the last day's commits)")
    group.addoption("--record", action="store_true", help="write how long the tests took into tests/durations.json")


@dataclass(frozen=True, slots=True)
class Unit:
    """Tests that are taken or left together: a class, or one test."""

    name: str
    seconds: float
    is_smoke: bool
    distance: float


def choose(units: Iterable[Unit], seconds: float, commit: str) -> set[str]:
    """Names of the units that a run of `seconds` has. Smoke is always in it."""
    taken, left = set[str](), seconds
    for unit in sorted(units, key=lambda unit: _rank(unit, commit)):
        if unit.is_smoke or unit.seconds <= left:
            taken.add(unit.name)
            left -= unit.seconds
    return taken


def _rank(unit: Unit, commit: str) -> tuple[bool, float, str]:
    """Smoke, then what is near, the nearest first; what is farther away turns with the commit."""
    near = unit.distance if unit.distance <= NEAR else FAR
    return (not unit.is_smoke, near, hashlib.sha256(f"{commit} {unit.name}".encode()).hexdigest())


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the time does not allow. Does nothing without `--seconds`."""
    seconds = config.getoption("--seconds")
    if seconds is None:
        return
    asked = config.getoption("--changed")
    changed = changed_files() if asked is None else asked.split()
    by_unit = group(items)
    kept = choose(_units(by_unit, distances({_file(item) for item in items}, changed)), seconds, commit_here())
    left_out = [item for name, its in by_unit.items() if name not in kept for item in its]
    config.stash[CHOICE] = f"{len(items) - len(left_out)} of {len(items)} tests in about {seconds:.0f} s; without --seconds all are run"
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


def group(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        cls = getattr(item, "cls", None)
        found.setdefault(f"{_file(item)}::{cls.__name__}" if cls else item.nodeid, []).append(item)
    return found


def _units(by_unit: Mapping[str, Sequence[pytest.Item]], near: Mapping[str, float]) -> list[Unit]:
    known = Durations.load()
    return [
        Unit(
            name,
            sum(known.of(item.nodeid) for item in items),
            any(is_smoke(item.nodeid) and _is_at_home(item.nodeid) for item in items),
            near[_file(items[0])],
        )
        for name, items in by_unit.items()
    ]


def _is_at_home(nodeid: str) -> bool:
    """Whether a test runs where it was written for: smoke of the other lanes is no smoke over a server."""
    return not _kind() or nodeid.startswith("tests/connect/")


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


class Durations:
    """Seconds of tests by name without parameters, by kind of run: the same test takes longer over a server.

    A folder's name stands for tests in it of which nothing is recorded.
    """

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds = dict(seconds)
        by_folder: dict[str, list[float]] = {}
        for name, took in self.seconds.items():
            for folder in _folders_of(name):
                by_folder.setdefault(folder, []).append(took)
        self._means = {folder: statistics.fmean(found) for folder, found in by_folder.items()}

    @classmethod
    def load(cls) -> Durations:
        return cls(json.loads(DURATIONS.read_text(encoding="utf-8")) if DURATIONS.exists() else {})

    def of(self, nodeid: str) -> float:
        """Recorded, or else the mean of the nearest folder of which something is recorded."""
        name = key_of(nodeid)
        found = self.seconds.get(name)
        if found is not None:
            return found
        return next((self._means[folder] for folder in _folders_of(name) if folder in self._means), UNKNOWN)

    def save(self, measured: Mapping[str, Sequence[float]]) -> None:
        """Replaces what is recorded of the measured tests."""
        means = {key_of(name): max(SHORTEST, round(statistics.fmean(found), 2)) for name, found in measured.items()}
        text = json.dumps(dict(sorted({**self.seconds, **means}.items())), indent=0, ensure_ascii=False)
        DURATIONS.write_text(text + "\n", encoding="utf-8")


def key_of(nodeid: str) -> str:
    """The kind of run, and the test's name without parameters."""
    return f"{_kind()}{':' if _kind() else ''}{nodeid.partition('[')[0]}"


def _kind() -> str:
    """What the tests run over, where that is not a directory and a session of this process."""
    return os.environ.get("LAKEHOUSE_STORE") or ("connect" if os.environ.get("LAKEHOUSE_CONNECT") == "1" else "")


def _folders_of(name: str) -> list[str]:
    """The module first, then its folders."""
    module = name.partition("::")[0]
    parts = module.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


CHOICE = pytest.StashKey[str]()


class Recorder:
    """Collects how long each test took, with what was made and torn down for it."""

    def __init__(self) -> None:
        self.measured: dict[str, list[float]] = {}
        self._now: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._now[report.nodeid] = self._now.get(report.nodeid, 0.0) + report.duration
        if report.when == "teardown":
            self.measured.setdefault(report.nodeid.partition("[")[0], []).append(self._now.pop(report.nodeid))

    def pytest_sessionfinish(self) -> None:
        Durations.load().save(self.measured)
