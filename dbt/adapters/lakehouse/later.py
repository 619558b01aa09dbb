"""Modules that are loaded when something of them is first used: dbt cannot say what to start before the adapter is imported."""

from __future__ import annotations

import importlib
from typing import Any


class Later:
    """Stands for a module; asking it for a name imports the module. Safe to use from many threads."""

    def __init__(self, module: str) -> None:
        self._module = module

    def load(self) -> None:
        """Import it now."""
        importlib.import_module(self._module)

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)
