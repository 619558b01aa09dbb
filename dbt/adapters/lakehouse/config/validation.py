"""Configs of every node, checked when dbt has parsed the project: `dbt parse`, `dbt compile` and `dbt run` refuse a wrong one alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.config.model_config import check_config, check_strategy_name
from dbt.adapters.lakehouse.config.service_config import service_options

CHECKED = ("model", "seed", "snapshot")


OptionCheck = Callable[[Mapping[str, Any]], object]


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
    if findings:
        raise DbtConfigError("\n  ".join(findings))


def _finding(node: Any, project: str, macros: Collection[str], check_options: OptionCheck) -> str | None:
    if str(getattr(node, "resource_type", "")) not in CHECKED:
        return None
    config = node.config
    extra = list(getattr(config, "_extra", {}))
    name = f"{node.resource_type} '{node.name}' ({node.original_file_path})"
    try:
        check_config(name, config, extra, strict=node.package_name == project)
        check_strategy_name(name, config, macros)
        check_options({**service_options(config), **(config.get("hoodie") or {})})
    except DbtConfigError as error:
        return error.msg if name in error.msg else f"{name}: {error.msg}"
    return None
