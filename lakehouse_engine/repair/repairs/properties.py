"""Unusable `hoodie.properties`, without which nothing else can be read."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.errors import PropertiesError, TableNotFoundError
from lakehouse_engine.format.properties import parse_properties
from lakehouse_engine.repair.disorder import Disorder, DisorderKind
from lakehouse_engine.repair.repairs.aside import FOLDER, set_aside
from lakehouse_engine.repair.repairs.remedy import Mending, mending
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import COPY, PROPERTIES, ConfigStore

_NAMED = 5


def unfinished_properties(storage: Storage) -> Iterator[Mending]:
    """An interrupted change of the properties: the backup beside them is read instead."""
    store = ConfigStore(storage)
    if store.damage() is not None:
        message = "is damaged or gone; the backup beside it, which is read instead, takes its place"
        yield mending(PROPERTIES, message, lambda: _recover(storage))


def _recover(storage: Storage) -> None:
    if storage.head(PROPERTIES) is not None:
        set_aside(storage, PROPERTIES)
    ConfigStore(storage).recover()


def broken_properties(storage: Storage) -> Disorder | None:
    """What is wrong with the properties, if `put_properties_back` can repair it; None if they are readable.

    Raises `PropertiesError` or `TableNotFoundError` if there is no copy.
    """
    store = ConfigStore(storage)
    try:
        store.read()
    except (PropertiesError, TableNotFoundError) as error:
        if store.copy() is None:
            raise
        wrong = error.message.partition("; `repair`")[0]
        done = f"it is put back as this engine wrote it last, and what is there goes to {FOLDER}"
        message = f"{wrong}; {done}. {_differences(storage)}"
        return Disorder(DisorderKind.DAMAGED_FILE, PROPERTIES, message)
    return None


def put_properties_back(storage: Storage) -> None:
    """Under the table lock."""
    if storage.head(PROPERTIES) is not None:
        set_aside(storage, PROPERTIES)
    ConfigStore(storage).put_back()


def _differences(storage: Storage) -> str:
    """Warn that another program may have changed the properties after the copy was made."""
    copied = parse_properties(storage.read(COPY))
    try:
        stored = parse_properties(storage.read(PROPERTIES)) if storage.head(PROPERTIES) is not None else {}
    except PropertiesError:
        stored = {}
    other = sorted(f"{key}={value}" for key, value in stored.items() if copied.get(key) != value)
    if not other:
        return "Nothing in it differs from the copy but what is missing"
    more = f" and {len(other) - _NAMED} more" if len(other) > _NAMED else ""
    return f"It differs from the copy in {', '.join(other[:_NAMED])}{more}: damage, or a change by another program"
