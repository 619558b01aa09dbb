"""Packages that have SQL for Databricks and none for Spark: the adapter's own macros stand in front of theirs."""

from __future__ import annotations

from typing import Any

OWN = "dbt"
"""What a search order calls the macros of dbt and its adapters, among them those in `include/lakehouse/macros/packages`."""

ANSWERED = ("audit_helper", "dbt_expectations", "elementary")
"""Packages of which the adapter has macros. What dbt itself has under a name that they dispatch means the same there."""


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
