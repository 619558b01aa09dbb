"""The commit that is checked out: what turns with it is the same for a commit every time."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path


@cache
def commit_here() -> str:
    """Its hash; empty outside of a repository."""
    given = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA")
    if given:
        return given
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""
