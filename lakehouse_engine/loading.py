"""Imports modules on first use."""

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

    PySpark's modules import each other in cycles. If two threads enter a cycle at different places, Python shows one of them
    half-initialised modules to avoid a deadlock. A thread that imports PySpark beside others first loads `PYSPARK` with this.
    """
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    with _IMPORTING:
        return import_module(name)


def modules_of(package: str) -> Callable[[str], ModuleType]:
    """`__getattr__` for a package whose modules are imported on first use (PEP 562). Thread-safe.

    The package imports its modules under `TYPE_CHECKING` too, so that type checkers and the layer test see them.
    """

    def load(name: str) -> ModuleType:
        module = f"{package}.{name}"
        if name.startswith("_") or find_spec(module) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return load_module(module)

    return load
