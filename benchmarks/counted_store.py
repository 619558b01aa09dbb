"""obstore's store in memory in place of object stores, with its requests counted. A listing is a request for each thousand objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import obstore
from obstore.store import MemoryStore

from lakehouse_engine.storage.objects import store as object_store

_PAGE = 1000
_REQUESTS: Counter[str] = Counter()


def use_counted_stores() -> None:
    """From now on each location of this process is a store in memory."""
    held: dict[str, MemoryStore] = {}
    object_store._from_url = lambda location, **settings: held.setdefault(location, MemoryStore())
    for name in ("get", "head", "get_range", "put"):
        setattr(obstore, name, _counted(name, getattr(obstore, name)))
    flat, folder = obstore.list, obstore.list_with_delimiter

    def pages(*given: Any, **named: Any) -> Iterator[Any]:
        _REQUESTS["list"] += 1
        for number, page in enumerate(flat(*given, **named)):
            _REQUESTS["list"] += number > 0
            yield page

    def entries(*given: Any, **named: Any) -> Any:
        found = folder(*given, **named)
        _REQUESTS["list"] += 1 + max(0, len(found["objects"]) + len(found["common_prefixes"]) - 1) // _PAGE
        return found

    obstore.list, obstore.list_with_delimiter = pages, entries  # type: ignore[assignment]


def requests(call: Callable[[], object]) -> int:
    """Requests that a call makes."""
    _REQUESTS.clear()
    call()
    return sum(_REQUESTS.values())


def _counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        _REQUESTS[name] += 1
        return real(*given, **named)

    return call
