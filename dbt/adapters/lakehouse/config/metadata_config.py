"""The config `metadata` of a model: whether its table has a metadata table, and which indexes are in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbt.adapters.lakehouse.names import did_you_mean

ENABLE = "hoodie.metadata.enable"
PARTITIONS = {
    "files": "",
    "column_stats": "hoodie.metadata.index.column.stats.enable",
    "bloom_filters": "hoodie.metadata.index.bloom.filter.enable",
    "record_index": "hoodie.metadata.global.record.level.index.enable",
    "partition_stats": "hoodie.metadata.index.partition.stats.enable",
}
"""Partitions of a metadata table, each with the option that asks for it (`files` is in every one)."""
_WORDS = ("auto", "true", "false")


def metadata_options(config: Mapping[str, Any]) -> dict[str, str]:
    """Engine options that the config means; none for `auto`, as a table's own options say the rest."""
    given = config.get("metadata")
    if isinstance(given, list | tuple):
        return {ENABLE: "true", **{PARTITIONS[str(one)]: "true" for one in given if PARTITIONS[str(one)]}}
    word = _word(given)
    return {} if word == "auto" else {ENABLE: word}


def metadata_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Find values that the config cannot have, and contradictions; findings start with `name`."""
    given = config.get("metadata")
    if isinstance(given, list | tuple):
        yield from _list_findings(name, [str(one) for one in given])
    elif _word(given) not in _WORDS:
        yield f"{name}: metadata is auto, true, false or a list of {', '.join(PARTITIONS)}; not {type(given).__name__} '{given}'"
    elif _word(given) == "false" and str(config.get("index")).lower() == "record_level":
        yield f"{name}: index 'record_level' asks the metadata table, which 'metadata: false' does without; keep one of the two"
    hoodie = config.get("hoodie")
    both = [key for key in hoodie if key in (ENABLE, *PARTITIONS.values())] if isinstance(hoodie, Mapping) and given is not None else []
    if both:
        yield f"{name}: '{both[0]}' is said by the config 'metadata'; use one of them"


def _list_findings(name: str, given: list[str]) -> Iterator[str]:
    for one in given:
        if one not in PARTITIONS:
            yield f"{name}: metadata names '{one}', which is not one of {', '.join(PARTITIONS)}{did_you_mean(one, tuple(PARTITIONS))}"
    if "partition_stats" in given and "column_stats" not in given:
        yield f"{name}: metadata names 'partition_stats', which are made of 'column_stats': name both"


def _word(given: Any) -> str:
    return "auto" if given is None else str(given).lower()
