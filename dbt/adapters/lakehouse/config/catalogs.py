"""The profile's `catalogs` (other warehouses, attached read-only by name) and `catalog` (the name of the target's own)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.bridge.validation import catalog_name
from dbt.adapters.lakehouse.config.place import check_directory
from dbt.adapters.lakehouse.config.stores import ObjectStore, shown_options, text_options
from dbt.adapters.lakehouse.names import did_you_mean

_KEYS = ("warehouse", "storage_options")


@dataclass(frozen=True)
class Attached:
    """One warehouse: an absolute directory, or an address in an object store."""

    warehouse: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def given(self) -> dict[str, Any]:
        """Form that the engine takes."""
        return {"warehouse": self.warehouse, "storage_options": dict(self.storage_options)}

    @property
    def shown(self) -> str:
        """Form that may be printed."""
        options = shown_options(self.storage_options)
        return self.warehouse + (f" {options}" if options else "")


def own_name(given: Any) -> str | None:
    """The target's own name, in lower case. Raises `DbtConfigError`."""
    return None if given is None else _name("catalog", given)


def attached(given: Any, own: str | None, resolved: Callable[[str], str]) -> dict[str, Attached]:
    """Attached warehouses by name in lower case. `resolved` makes an absolute path of a directory. Raises `DbtConfigError` by name."""
    if not isinstance(given, Mapping):
        raise DbtConfigError("catalogs is a mapping of names to warehouses, as {prod: s3://bucket/path}")
    found: dict[str, Attached] = {}
    for key, place in given.items():
        name = _name("catalogs", key)
        if name in found or name == own:
            raise DbtConfigError(f"catalogs: there are two called '{key}' (the target's own is its 'catalog'): choose another name for one")
        found[name] = _place(f"catalogs.{key}", place, resolved)
    return found


def _place(told: str, given: Any, resolved: Callable[[str], str]) -> Attached:
    place: Any = {"warehouse": given} if isinstance(given, str) else given
    if not isinstance(place, Mapping) or not isinstance(place.get("warehouse"), str) or not place["warehouse"].strip():
        raise DbtConfigError(f"{told} is a directory or an address such as s3://bucket/path, or a mapping of 'warehouse' to one")
    for key in place:
        if key not in _KEYS:
            raise DbtConfigError(f"{told} has no key '{key}'{did_you_mean(str(key), _KEYS)}: it takes {' and '.join(_KEYS)}")
    options = text_options(place.get("storage_options") or {})
    warehouse = place["warehouse"]
    try:
        ObjectStore.of(warehouse, options)
    except DbtConfigError as error:
        raise DbtConfigError(f"{told}: {error.msg}") from error
    if "://" not in warehouse:
        check_directory(told, warehouse)
    return Attached(warehouse if "://" in warehouse else resolved(warehouse), options)


def _name(told: str, given: Any) -> str:
    try:
        return catalog_name(given)
    except DbtConfigError as error:
        raise DbtConfigError(f"{told}: {error.msg}") from error
