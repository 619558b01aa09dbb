"""Puts something else in the place of what the file tasks of a write do, whichever way it was planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def replace_tasks(monkeypatch: pytest.MonkeyPatch, run: Callable[[Any], Any]) -> None:
    for module in ("lakehouse_engine.write.routes", "lakehouse_engine.write.shares.routed"):
        monkeypatch.setattr(f"{module}.run_task", run)
