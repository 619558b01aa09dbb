"""Shares of matrices that are too long for every run: the hash of the commit chooses, and all commits together have all of them."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path


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


def commit_here() -> str:
    """The hash of the commit that is checked out; empty outside of a repository."""
    given = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA")
    if given:
        return given
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""
