"""Configs of `materialized: external`: where and in which format a model's rows are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.bridge.files import below, options_of
from dbt.adapters.lakehouse.config.findings import refuse
from dbt.adapters.lakehouse.config.keys import OWN_KEYS
from dbt.adapters.lakehouse.names import did_you_mean, node_label

EXTERNAL = "external"
KEYS = ("location", "format", "options")
FORMATS = ("parquet", "csv", "json")
_GLOBS = "*?[]{}\\"
_ENDINGS = (".csv", ".json", ".parquet", ".txt", ".gz")


@dataclass(frozen=True)
class ExternalConfig:
    """`location` is an absolute path; `options` are Spark's, as the user wrote them."""

    name: str
    location: str
    format: str = "parquet"
    partition_by: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, name: str, config: Mapping[str, Any], root: str) -> ExternalConfig:
        """Read the configs of a node. Relative locations start at `root`. Raises `DbtConfigError` with all findings."""
        refuse(external_findings(name, config))
        partition_by = config.get("partition_by") or ()
        return cls(
            name,
            below(config["location"], root),
            _format(config),
            (partition_by,) if isinstance(partition_by, str) else tuple(partition_by),
            options_of(_format(config), config.get("options")),
        )


def external_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Find impossible values, and table configs, which would have no effect. Each finding starts with `name`."""
    for key in OWN_KEYS:
        if key != "partition_by" and config.get(key) not in (None, False, {}, []):
            yield f"{name}: '{key}' is for tables, and an external model writes files: leave it out"
    if config.get("unique_key"):
        yield f"{name}: an external model is written anew as a whole, so that 'unique_key' has no effect: leave it out"
    location = config.get("location")
    if not isinstance(location, str) or not location.strip():
        yield f"{name}: materialized 'external' needs 'location': the folder that the files are written to"
    else:
        yield from _location_findings(name, location.strip())
    if _format(config) not in FORMATS:
        yield f"{name}: format '{config.get('format')}' is not one of {', '.join(FORMATS)}{did_you_mean(_format(config), FORMATS)}"
        return
    try:
        options_of(_format(config), config.get("options"))
    except DbtConfigError as error:
        yield f"{name}: {error.msg}"


def _location_findings(name: str, location: str) -> Iterator[str]:
    if "://" in location or location.startswith("file:"):
        yield (
            f"{name}: location '{location}' is an address: an external model is put in its place by a rename, which only directories have;"
            " write to a directory and copy it from there"
        )
    elif any(sign in location for sign in _GLOBS):
        yield f"{name}: location '{location}' has one of {' '.join(_GLOBS)}, and would be read as a pattern: rename it"
    elif location.lower().endswith(_ENDINGS):
        yield f"{name}: location '{location}' is a folder, in which Spark writes one file or more: leave the ending out"


def check_places(nodes: Mapping[str, Any], root: str, warehouses: Sequence[str], *, allow_files: bool) -> None:
    """Refuse external models that would overwrite each other, write into a warehouse, or are not allowed by the profile.

    Raises `DbtConfigError` with all of them.
    """
    external = [node for node in nodes.values() if node.config.get("materialized") == EXTERNAL]
    found = [(node_label(node), below(node.config["location"], root)) for node in external if isinstance(node.config.get("location"), str)]
    refuse([
        *(f"{name}: it writes files, which the profile does not allow (allow_files: false)" for name, _ in found if not allow_files),
        *_in_each_other(found, [one for one in warehouses if "://" not in one]),
    ])


def _in_each_other(found: list[tuple[str, str]], warehouses: Sequence[str]) -> Iterator[str]:
    for number, (name, place) in enumerate(found):
        for warehouse in warehouses:
            if _overlap(place, warehouse):
                yield f"{name}: location {place} and the warehouse {warehouse} are in each other: write the files somewhere else"
        for other, theirs in found[:number]:
            if _overlap(place, theirs):
                yield f"{name}: location {place} and that of {other}, {theirs}, are one, or in each other: give it a folder of its own"


def _overlap(one: str, other: str) -> bool:
    first, second = PurePath(one), PurePath(other)
    return first == second or first in second.parents or second in first.parents


def _format(config: Mapping[str, Any]) -> str:
    return str(config.get("format") or FORMATS[0]).lower()
