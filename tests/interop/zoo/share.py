"""Which part of the zoo a run visits: all of it, or the share that the hash of the commit chooses."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path

from tests.interop.zoo.kinds import EVERY, KINDS

SHARES = 20
"""A visit takes 10 to 15 seconds on two idle cores, so a share of the whole zoo takes three to four minutes."""


def chosen(names: Sequence[str], wanted: str, commit: str, shares: int = SHARES) -> list[str]:
    """Of `names` all for "all", those named (comma-separated), or every `shares`th from the one that `commit` says on."""
    if wanted == "all":
        return list(names)
    if wanted:
        asked = wanted.split(",")
        missing = sorted(set(asked) - set(names))
        if missing:
            raise ValueError(f"LAKEHOUSE_ZOO names kinds that are not in the zoo: {missing}")
        return [name for name in names if name in asked]
    return list(names)[zlib.crc32(commit.encode()) % shares :: shares]


def commit_here() -> str:
    """The hash of the commit that is checked out; empty outside of a repository."""
    given = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA")
    if given:
        return given
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


_WANTED = os.environ.get("LAKEHOUSE_ZOO", "")
CANDIDATES = EVERY if _WANTED else KINDS
VISITED = chosen(list(CANDIDATES), _WANTED, commit_here())
"""The kinds that this run visits."""
