"""Modules that are loaded when something of them is first used: dbt cannot say what to start before the adapter is imported."""

from __future__ import annotations

import importlib
import sys
import threading
from types import ModuleType
from typing import Any

_IMPORTING = threading.RLock()
PYSPARK = "pyspark.sql"


def load_module(name: str) -> ModuleType:
    """Import a module, one thread at a time.

    PySpark's modules import each other in circles. Of two threads that enter such a circle at two places, Python shows one the modules of
    the other half-made rather than have both wait for ever. So whoever imports PySpark beside other threads loads `PYSPARK` by this first.
    """
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    with _IMPORTING:
        return importlib.import_module(name)


class Later:
    """Stands for a module; asking it for a name imports the module. Safe to use from many threads."""

    def __init__(self, module: str) -> None:
        self._module = module

    def load(self) -> None:
        """Import it now."""
        load_module(self._module)

    def __getattr__(self, name: str) -> Any:
        return getattr(load_module(self._module), name)
