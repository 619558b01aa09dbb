"""One of two implementations for a test: by its name, so that a test has the same one every time; `make nightly` runs tests with both."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest


def is_in_first_half(what: str, name: str) -> bool:
    """Halves of different things are independent of each other."""
    return hashlib.sha256(f"{what} {name}".encode()).digest()[0] % 2 == 1


def uses(request: pytest.FixtureRequest, what: str, variable: str) -> bool:
    """Whether this test uses `what`; `variable` may say ALL for every test, or anything else for none."""
    wanted = os.environ.get(variable, "")
    return wanted == "ALL" if wanted else is_in_first_half(what, request.node.nodeid)


@contextmanager
def from_nothing_on(request: pytest.FixtureRequest, module: ModuleType, bound: str, variable: str) -> Iterator[None]:
    """Sets the `bound` of `module`, from which on an implementation is used, to 0 where `uses` says so."""
    before = getattr(module, bound)
    if uses(request, bound, variable):
        setattr(module, bound, 0)
    yield
    setattr(module, bound, before)
