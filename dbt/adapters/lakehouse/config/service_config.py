"""Configs `compaction`, `cleaning` and `archiving` of a model, and the engine options that they set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbt.adapters.lakehouse.names import did_you_mean

SERVICES: dict[str, dict[str, str]] = {
    "compaction": {
        "trigger": "hoodie.compact.inline.trigger.strategy",
        "commits": "hoodie.compact.inline.max.delta.commits",
        "seconds": "hoodie.compact.inline.max.delta.seconds",
        "strategy": "hoodie.compaction.strategy",
        "mode": "",
    },
    "cleaning": {
        "automatic": "hoodie.clean.automatic",
        "policy": "hoodie.clean.policy",
        "commits_retained": "hoodie.clean.commits.retained",
        "fileversions_retained": "hoodie.clean.fileversions.retained",
        "hours_retained": "hoodie.clean.hours.retained",
        "max_commits": "hoodie.clean.trigger.max.commits",
    },
    "archiving": {
        "automatic": "hoodie.archive.automatic",
        "min_commits": "hoodie.keep.min.commits",
        "max_commits": "hoodie.keep.max.commits",
        "beyond_savepoint": "hoodie.archive.beyond.savepoint",
    },
}
"""Short names of table service options, and Hudi's keys for them."""
SERVICES_LATER = ("clustering",)
COMPACTION_MODES = {
    "inline": {"hoodie.compact.inline": "true"},
    "async": {"hoodie.compact.inline": "false", "hoodie.compact.schedule.inline": "true"},
    "none": {"hoodie.compact.inline": "false"},
}
"""What a model does when a compaction is due: run it, plan it for another process, or nothing."""


def default_options(config: Mapping[str, Any]) -> dict[str, str]:
    """By default a merge-on-read model compacts after its own commit, when a compaction is due."""
    return dict(COMPACTION_MODES["inline"]) if _is_mor(config) else {}


def service_options(config: Mapping[str, Any]) -> dict[str, str]:
    """Engine options of the model's table services."""
    chosen: dict[str, str] = {}
    for service, keys in SERVICES.items():
        given = config.get(service) or {}
        if given.get("mode") is not None:
            chosen |= COMPACTION_MODES[str(given["mode"]).lower()]
        chosen |= texts({keys[key]: value for key, value in given.items() if keys[key]})
    return chosen


def texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as text, booleans in lower case. A key set to none is left out."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items() if value is not None}


def service_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Find values that the configs of table services cannot have; findings start with `name`."""
    for service, keys in SERVICES.items():
        given = config.get(service)
        if given is None:
            continue
        if not isinstance(given, Mapping):
            yield f"{name}: {service} is a mapping of {', '.join(keys)}; not {type(given).__name__} '{given}'"
            continue
        for key in given:
            if key not in keys:
                yield f"{name}: {service} has no '{key}'; it takes {', '.join(keys)}{did_you_mean(str(key), tuple(keys))}"
    compaction = config.get("compaction")
    compaction = compaction if isinstance(compaction, Mapping) else {}
    mode = "inline" if compaction.get("mode") is None else str(compaction["mode"]).lower()
    if mode not in COMPACTION_MODES:
        yield f"{name}: compaction mode '{mode}' is not one of {', '.join(COMPACTION_MODES)}"
    if compaction and not _is_mor(config):
        yield f"{name}: compaction is for table_type 'mor'; a copy-on-write table has nothing to compact"


def _is_mor(config: Mapping[str, Any]) -> bool:
    return str(config.get("table_type") or "cow").lower() == "mor"
