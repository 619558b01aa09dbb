"""Tests that were written for one server, for another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import ModuleType
from typing import Any


def those_of(module: ModuleType, without: Collection[str] = ()) -> Mapping[str, Any]:
    """Tests and fixtures of a module, but for the server's own. Raises `LookupError` for a name in `without` that there is not."""
    if missing := sorted(name for name in without if name not in vars(module)):
        raise LookupError(f"{module.__name__} has no {missing}")
    found = {name: one for name, one in vars(module).items() if name.startswith("test_") or name == "pytestmark" or _is_fixture(one)}
    return {name: one for name, one in found.items() if name not in without and name not in ("s3_store", "test_storage")}


def _is_fixture(one: object) -> bool:
    return type(one).__name__ == "FixtureFunctionDefinition"
