"""Where `adapter.dispatch` looks for the macros of packages: the adapter's own first, and those for Databricks before the defaults."""

from __future__ import annotations

from copy import copy
from typing import Any

from dbt.adapters.factory import FACTORY

OWN = "dbt"
"""What a search order calls the macros of dbt and its adapters, among them those in `include/lakehouse/macros/packages`."""

ANSWERED = ("audit_helper", "dbt_expectations", "dbt_utils", "elementary")
"""Packages of which the adapter has macros. What dbt itself has under a name that they dispatch means the same there."""

_LAST_PLUGIN = "lakehouse_macros"
"""The last plugin that the adapter depends on. It brings macros that are called with their package's name, so no macro has its prefix."""


def ask_adapter_first(config: Any) -> None:
    """Let `adapter.dispatch` find the adapter's macros for a package right before the package's own.

    A search order that a project gives stays as it is otherwise, and one that names `dbt` is left alone. `config` is dbt's runtime
    config, whose `dispatch` is changed; `dbt debug` gives a profile, which has no macros to find.
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
    """Let `adapter.dispatch` look for `databricks__` macros behind `lakehouse__` and `spark__`, and before `default__`.

    Databricks speaks Spark's SQL, so what a package has for it fits better than its default. dbt takes the prefixes from the types of an
    adapter's plugins, and a plugin named `databricks` would be dbt-databricks itself; so the last plugin answers with that type instead.
    Does nothing where dbt did not load the plugins.
    """
    if (loaded := FACTORY.plugins.get(_LAST_PLUGIN)) is not None:
        plugin = copy(loaded)
        plugin.adapter = _Databricks  # type: ignore[assignment]
        FACTORY.plugins[_LAST_PLUGIN] = plugin


class _Databricks:
    """All that dbt asks of the adapter of a plugin that another one depends on."""

    @classmethod
    def type(cls) -> str:
        return "databricks"
