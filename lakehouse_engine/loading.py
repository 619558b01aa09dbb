"""Modules that are loaded when something of them is first used."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

PYSPARK = "pyspark.sql"
_IMPORTING = threading.RLock()


def load_module(name: str) -> ModuleType:
    """Import a module, one thread at a time.

    PySpark's modules import each other in circles. When two threads enter such a circle at two places, Python shows one of them the modules
    of the other half-made, rather than let both wait for ever. A thread that imports PySpark beside others loads `PYSPARK` by this first.
    """
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    with _IMPORTING:
        return import_module(name)


def modules_of(package: str) -> Callable[[str], ModuleType]:
    """The `__getattr__` of a package whose modules are loaded when they are first used (PEP 562). Safe to use from many threads.

    The package imports its modules under `TYPE_CHECKING` too, so that type checkers and the test of the layers see what is used.
    """

    def load(name: str) -> ModuleType:
        module = f"{package}.{name}"
        if name.startswith("_") or find_spec(module) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return load_module(module)

    return load
