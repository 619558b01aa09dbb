"""Shares of matrices that are too long for every run: the hash of the commit chooses, and all commits together have all of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TOLD: list[str] = []
"""Which shares this run has, a line each; `tests/conftest.py` says so at the end."""


def share_of(matrix: str, names: Sequence[str], share: int, *, variable: str = "LAKEHOUSE_CORE", full: str = "make core-full") -> list[str]:
    """About `share` of the `names` of a matrix, as the commit that is checked out says; `variable` may ask for others ("all", or some).

    Names are mixed first: every other one of a product, say, would be all of one kind. Matrices turn independently of each other. What
    was chosen is told at the end of the run, with what runs the matrix whole.
    """
    mixed = sorted(names, key=lambda name: turn("", name))
    kept = set(chosen(mixed, os.environ.get(variable, ""), turn(commit_here(), matrix), share))
    found = [name for name in names if name in kept]
    if len(found) < len(names):
        shown = ", ".join(found) if len(", ".join(found)) < 200 else f"{', '.join(found[:3])}, ..."
        TOLD.append(f"{matrix}: {len(found)} of {len(names)}: {shown} (all of it: {full})")
    return found


def keep_share(
    config: pytest.Config, items: list[pytest.Item], folder: Path, matrix: str, share: int | Fraction, *, variable: str, full: str
) -> None:
    """Of tests below `folder` leave about `share`, a number or a part, whole classes at a time. All, where tests are asked for by name."""
    if not any(Path(str(argument).partition("::")[0]).resolve() in (folder, *folder.parents) for argument in config.args):
        return
    names = {item: f"{item.path.name}::{item.cls.__name__ if item.cls else item.name}" for item in items if folder in item.path.parents}  # type: ignore[attr-defined]
    known = sorted(set(names.values()))
    size = share if isinstance(share, int) else ceil(len(known) * share)
    kept = set(share_of(matrix, known, size, variable=variable, full=full)) if known else set()
    left = [item for item in items if item in names and names[item] not in kept]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in names or names[item] in kept]


def is_turn(request: pytest.FixtureRequest, matrix: str, variable: str, told: str) -> bool:
    """Whether it is this test's turn to have what is told as `told`: that of every other one, or, as `variable` says, of ALL or of none."""
    wanted = os.environ.get(variable, "")
    if not wanted and told not in TOLD:
        TOLD.append(told)
    return wanted == "ALL" if wanted else int(turn(commit_here(), f"{matrix} {request.node.nodeid}"), 16) % 2 == 1


@contextmanager
def from_nothing_on(request: pytest.FixtureRequest, module: ModuleType, bound: str, variable: str, told: str) -> Iterator[None]:
    """What `module` does from a `bound` on, by its name there, it does from nothing on for every other test, or as `variable` says, ALL
    or LARGE, for every one; told as `told`.
    """
    before = getattr(module, bound)
    if is_turn(request, bound, variable, told):
        setattr(module, bound, 0)
    yield
    setattr(module, bound, before)


def turn(commit: str, matrix: str) -> str:
    """What stands for the commit where a matrix shall not turn in step with others. (A CRC of both would: it is linear.)"""
    return hashlib.sha256(f"{commit} {matrix}".encode()).hexdigest()


def chosen(names: Sequence[str], wanted: str, commit: str, share: int) -> list[str]:
    """Of `names` all for "all", those named (comma-separated), or about `share` of them, spread evenly, as `commit` says."""
    if wanted == "all":
        return list(names)
    if wanted:
        asked = wanted.split(",")
        missing = sorted(set(asked) - set(names))
        if missing:
            raise ValueError(f"{missing} is not among what there is: {', '.join(names)}")
        return [name for name in names if name in asked]
    shares = max(1, -(-len(names) // share))
    return list(names)[zlib.crc32(commit.encode()) % shares :: shares]


@cache
def commit_here() -> str:
    """The hash of the commit that is checked out; empty outside of a repository."""
    given = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA")
    if given:
        return given
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""
