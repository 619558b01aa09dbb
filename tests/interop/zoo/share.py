"""Which part of the zoo a run visits: all of it, or the share that the hash of the commit chooses."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path

from tests.interop.zoo.kinds import EVERY, of_makers

SHARE = 6
"""Kinds of a share: most are made by two Hudis, and a visit takes 10 to 15 seconds on two idle cores, which gives three minutes."""


def chosen(names: Sequence[str], wanted: str, commit: str, share: int = SHARE) -> list[str]:
    """Of `names` all for "all", those named (comma-separated), or about `share` of them, spread evenly, as `commit` says."""
    if wanted == "all":
        return list(names)
    if wanted:
        asked = wanted.split(",")
        missing = sorted(set(asked) - set(names))
        if missing:
            raise ValueError(f"LAKEHOUSE_ZOO names kinds that are not in the zoo: {missing}")
        return [name for name in names if name in asked]
    shares = max(1, -(-len(names) // share))
    return list(names)[zlib.crc32(commit.encode()) % shares :: shares]


def commit_here() -> str:
    """The hash of the commit that is checked out; empty outside of a repository."""
    given = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA")
    if given:
        return given
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


_WANTED = os.environ.get("LAKEHOUSE_ZOO", "")
_TRIED, _UNTRIED = of_makers(tried=True), of_makers(tried=False)
CANDIDATES = {"untried": _UNTRIED, "all": _TRIED, "": _TRIED}.get(_WANTED, EVERY)
VISITED = chosen(list(CANDIDATES), "all" if _WANTED == "untried" else _WANTED, commit_here())
"""The kinds that this run visits: of those that were tried the share of the commit or all; what is untried; or those that are named."""
