"""Configs of every node, checked when dbt has parsed the project: `dbt parse`, `dbt compile` and `dbt run` refuse a wrong one alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.bridge.files import META
from dbt.adapters.lakehouse.config.model_config import check_config, check_strategy_name
from dbt.adapters.lakehouse.config.service_config import service_options

CHECKED = ("model", "seed", "snapshot")


OptionCheck = Callable[[Mapping[str, Any]], object]


def check_threads(threads: Any) -> None:
    """Raise `DbtConfigError` for a number of threads that runs nothing: dbt would end in an error of Python's."""
    if isinstance(threads, int) and threads < 1:
        raise DbtConfigError(f"threads is 1 or more, not {threads}: correct the profile's 'threads', or --threads")


def check_profile(hoodie: Mapping[str, Any], check_options: OptionCheck) -> None:
    """Check the profile's defaults for every table. Raises `DbtConfigError`."""
    try:
        check_options(hoodie)
    except DbtConfigError as error:
        raise DbtConfigError(f"hoodie of the profile: {error.msg}") from error


def check_nodes(nodes: Mapping[str, Any], project: str, macros: Collection[str], check_options: OptionCheck) -> None:
    """Check the enabled models, seeds and snapshots of a manifest.

    `macros` are the names of all macros (a strategy may be one of the user's); `check_options` refuses unknown `hoodie.*` keys.
    All findings are reported together. Raises `DbtConfigError`.
    """
    findings = [message for node in nodes.values() if (message := _finding(node, project, macros, check_options))]
    findings += _one_relation_twice(nodes)
    if findings:
        raise DbtConfigError("\n  ".join(findings))


def check_sources(sources: Iterable[Any], nodes: Mapping[str, Any]) -> None:
    """Refuse a source that reads files and has the name of a model's relation: which of the two is meant could not be told.

    Raises `DbtConfigError`.
    """
    built = {(str(node.schema).lower(), str(node.alias).lower()): node for node in nodes.values() if _leaves_relation(node)}
    findings = []
    for source in sources:
        node = built.get((str(source.schema).lower(), str(source.identifier).lower()))
        if node is not None and (source.meta or {}).get(META) is not None:
            told = f"source '{source.source_name}.{source.name}' ({source.original_file_path})"
            findings.append(f"{told} reads files as {node.schema}.{node.alias}, which {_named(node)} builds: give it another schema")
    if findings:
        raise DbtConfigError("\n  ".join(findings))


def _leaves_relation(node: Any) -> bool:
    return str(getattr(node, "resource_type", "")) in CHECKED and node.config.get("materialized") != "ephemeral"


def _finding(node: Any, project: str, macros: Collection[str], check_options: OptionCheck) -> str | None:
    if str(getattr(node, "resource_type", "")) not in CHECKED:
        return None
    config = node.config
    extra = list(getattr(config, "_extra", {}))
    name = _named(node)
    try:
        check_config(name, config, extra, strict=node.package_name == project)
        check_strategy_name(name, config, macros)
        check_options({**service_options(config), **(config.get("hoodie") or {})})
    except DbtConfigError as error:
        return error.msg if name in error.msg else f"{name}: {error.msg}"
    return None


def _one_relation_twice(nodes: Mapping[str, Any]) -> Iterator[str]:
    """Nodes whose relations differ in case only, which here are one: the second would replace what the first wrote. dbt itself compares
    names as they are written, and has refused equal ones before.
    """
    owners: dict[tuple[str, str], Any] = {}
    for node in nodes.values():
        if not _leaves_relation(node):
            continue
        owner = owners.setdefault((str(node.schema).lower(), str(node.alias).lower()), node)
        if owner is not node:
            theirs = f"{owner.schema}.{owner.alias} of {_named(owner)}"
            yield f"{_named(node)}: its {node.schema}.{node.alias} is {theirs}, as the case of names does not count: give one another alias"


def _named(node: Any) -> str:
    return f"{node.resource_type} '{node.name}' ({node.original_file_path})"
