"""Names and places of warehouses that are attached to another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_engine.catalog.names import check_catalog_name
from lakehouse_engine.errors import OptionError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_for

_KEYS = ("warehouse", "storage_options")


def attached_places(catalogs: Mapping[str, Any], own: str = "") -> dict[str, Storage]:
    """Storages of attached catalogs by lower-case name. Sends no request. Raises `OptionError` by name."""
    found: dict[str, Storage] = {}
    for given, place in catalogs.items():
        name = check_catalog_name(given)
        if name in found or name == own:
            raise OptionError(f"there are two catalogs called {given!r}: choose another name for one")
        found[name] = _place(given, place)
    return found


def _place(name: str, given: Any) -> Storage:
    place: Any = {"warehouse": given} if isinstance(given, str) else given
    if not isinstance(place, Mapping) or not isinstance(place.get("warehouse"), str) or not place["warehouse"].strip():
        raise OptionError(f"the catalog {name!r} needs a warehouse: a directory, or an address such as s3://bucket/path")
    if wrong := [key for key in place if key not in _KEYS]:
        raise OptionError(f"the catalog {name!r} has no key {wrong[0]!r}: it takes {' and '.join(_KEYS)}")
    try:
        return storage_for(place["warehouse"], place.get("storage_options"))
    except OptionError as error:
        raise OptionError(f"the catalog {name!r}: {error.message}") from error
