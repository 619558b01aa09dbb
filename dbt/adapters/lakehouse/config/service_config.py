"""The configs `compaction`, `clustering`, `cleaning` and `archiving` of a model, and the engine options that they mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbt.adapters.lakehouse.names import did_you_mean
from lakehouse_engine.api.errors import OptionError
from lakehouse_engine.api.options import clean_policy_of

SERVICES: dict[str, dict[str, str]] = {
    "compaction": {
        "trigger": "hoodie.compact.inline.trigger.strategy",
        "commits": "hoodie.compact.inline.max.delta.commits",
        "seconds": "hoodie.compact.inline.max.delta.seconds",
        "strategy": "hoodie.compaction.strategy",
        "mode": "",
    },
    "clustering": {
        "order_by": "hoodie.clustering.plan.strategy.sort.columns",
        "layout": "hoodie.layout.optimize.strategy",
        "commits": "hoodie.clustering.inline.max.commits",
        "trigger": "",
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
"""Short names of what table services take, and Hudi's keys for them."""
COMPACTION_MODES = {
    "inline": {"hoodie.compact.inline": "true"},
    "async": {"hoodie.compact.inline": "false", "hoodie.compact.schedule.inline": "true"},
    "none": {"hoodie.compact.inline": "false"},
}
"""What a model does when a compaction is due: run it, plan it for another process, or nothing."""
CLUSTERING_TRIGGERS = {
    "inline": {"hoodie.clustering.inline": "true"},
    "async": {"hoodie.clustering.inline": "false", "hoodie.clustering.schedule.inline": "true"},
    "none": {"hoodie.clustering.inline": "false"},
}
"""As `COMPACTION_MODES`, of a clustering."""
_TRIGGER_KEY = SERVICES["compaction"]["trigger"]
_COUNTED_BY = {
    "commits": ("num_commits", "num_commits_after_last_request", "num_and_time", "num_or_time"),
    "seconds": ("time_elapsed", "num_and_time", "num_or_time"),
}
"""What may make a compaction due, and the triggers that look at it."""
LAYOUTS = ("linear", "z_order", "z-order", "zorder", "hilbert")


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
        if service == "clustering" and given:
            chosen |= CLUSTERING_TRIGGERS[_trigger(given)]
            given = {**given, "order_by": _joined(given.get("order_by"))}
        if service == "cleaning":
            given = {**given, "policy": _clean_policy(given)}
        chosen |= texts({keys[key]: value for key, value in given.items() if keys[key]})
    return chosen


def in_short_names(text: str, config: Mapping[str, Any]) -> str:
    """What the engine says about options, with those that the config of a service gives called as it calls them."""
    stated = config.get("hoodie") or {}
    for service, keys in SERVICES.items():
        for short, key in keys.items():
            if key and key not in stated and (config.get(service) or {}).get(short) is not None:
                text = text.replace(key, f"{service} {short}")
    return text


def _clean_policy(cleaning: Mapping[str, Any]) -> str | None:
    """Raises the engine's `OptionError` where more than one policy is meant."""
    keys = SERVICES["cleaning"]
    given = {key: cleaning[short] for short, key in keys.items() if cleaning.get(short) is not None}
    return clean_policy_of(given, {key: short for short, key in keys.items()})


def _trigger(clustering: Mapping[str, Any]) -> str:
    return "inline" if clustering.get("trigger") is None else str(clustering["trigger"]).lower()


def _joined(columns: Any) -> str | None:
    """Names of columns, a list or a single one, as the engine's option has them."""
    if columns is None or isinstance(columns, str):
        return columns
    return ",".join(map(str, columns))


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
    hoodie = config.get("hoodie")
    stated = hoodie.get(_TRIGGER_KEY) if isinstance(hoodie, Mapping) else None
    trigger = str(stated or compaction.get("trigger") or "num_commits").lower()
    for counted, triggers in _COUNTED_BY.items():
        if compaction.get(counted) is not None and trigger not in triggers:
            yield f"{name}: compaction {counted} count with a trigger of them: {', '.join(triggers)}"
    clustering, cleaning = config.get("clustering"), config.get("cleaning")
    yield from _clustering_findings(name, clustering if isinstance(clustering, Mapping) else {})
    yield from _cleaning_findings(name, cleaning if isinstance(cleaning, Mapping) else {})


def _cleaning_findings(name: str, cleaning: Mapping[str, Any]) -> Iterator[str]:
    try:
        _clean_policy(cleaning)
    except OptionError as error:
        yield f"{name}: {in_short_names(str(error), {'cleaning': cleaning})}"


def _clustering_findings(name: str, clustering: Mapping[str, Any]) -> Iterator[str]:
    if _trigger(clustering) not in CLUSTERING_TRIGGERS:
        yield f"{name}: clustering trigger '{_trigger(clustering)}' is not one of {', '.join(CLUSTERING_TRIGGERS)}"
    columns, layout = clustering.get("order_by"), clustering.get("layout")
    names = [] if columns is None else [columns] if isinstance(columns, str) else columns
    if not isinstance(names, Sequence) or not all(isinstance(one, str) and one.strip() for one in names):
        yield f"{name}: clustering order_by is a list of columns, not {columns!r}"
    elif any("," in one for one in names):
        yield f"{name}: clustering order_by {columns!r} is one name: several columns are a list"
    if layout is not None and str(layout).lower() not in LAYOUTS:
        yield f"{name}: clustering layout '{layout}' is not one of linear, z_order, hilbert"
    elif layout is not None and str(layout).lower() != "linear" and not names:
        yield f"{name}: clustering layout '{layout}' needs columns: order_by"


def _is_mor(config: Mapping[str, Any]) -> bool:
    return str(config.get("table_type") or "cow").lower() == "mor"
