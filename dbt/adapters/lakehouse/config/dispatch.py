"""Search order of `adapter.dispatch` for package macros: the adapter's own first, then Databricks', then defaults."""

from __future__ import annotations

from copy import copy
from typing import Any

from dbt.adapters.factory import FACTORY

OWN = "dbt"
"""Name of dbt's and the adapters' macros in a search order; includes `include/lakehouse/macros/packages`."""

ANSWERED = ("audit_helper", "dbt_expectations", "dbt_utils", "elementary")
"""Packages for which the adapter brings macros. A macro of dbt with the same name means the same there."""

_LAST_PLUGIN = "lakehouse_macros"
"""Last plugin that the adapter depends on. Its macros are called with the package's name, so none carries its prefix."""


def ask_adapter_first(config: Any) -> None:
    """Make `adapter.dispatch` find the adapter's macros right before the package's own.

    Keeps the rest of a project's search order; a search order that names `dbt` is not changed. `config` is dbt's runtime config, whose
    `dispatch` changes; `dbt debug` passes a profile, which has no macros.
    """
    if not hasattr(config, "dispatch"):
        return
    given = {entry["macro_namespace"]: entry for entry in config.dispatch}
    for package in ANSWERED:
        order = list(given[package]["search_order"]) if package in given else [config.project_name, package]
        if OWN not in order:
            place = order.index(package) if package in order else len(order)
            given[package] = {"macro_namespace": package, "search_order": [*order[:place], OWN, *order[place:]]}
    config.dispatch = list(given.values())


def ask_databricks_last() -> None:
    """Make `adapter.dispatch` look for `databricks__` macros after `lakehouse__` and `spark__`, before `default__`.

    Databricks speaks Spark's SQL, so its macros fit better than the defaults. dbt takes prefixes from the types of an adapter's plugins,
    and a plugin named `databricks` would be dbt-databricks itself; so the last plugin answers with that type. Does nothing if dbt did not
    load the plugins.
    """
    if (loaded := FACTORY.plugins.get(_LAST_PLUGIN)) is not None:
        plugin = copy(loaded)
        plugin.adapter = _Databricks  # type: ignore[assignment]
        FACTORY.plugins[_LAST_PLUGIN] = plugin


class _Databricks:
    """Everything that dbt asks the adapter of a plugin that another plugin depends on."""

    @classmethod
    def type(cls) -> str:
        return "databricks"
