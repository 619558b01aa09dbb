"""Checks the configs of every node after parsing, so that `dbt parse`, `dbt compile` and `dbt run` refuse a wrong one alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.bridge.files import META
from dbt.adapters.lakehouse.config.findings import refuse
from dbt.adapters.lakehouse.config.keys import CONFIG_OF_OPTION
from dbt.adapters.lakehouse.config.model_config import STORED, config_findings, names, strategy_findings
from dbt.adapters.lakehouse.config.service_config import in_short_names, service_options
from dbt.adapters.lakehouse.names import did_you_mean, missing_names, node_label, source_label

CHECKED = ("model", "seed", "snapshot")
OF_COLUMNS = ("unique_key", "partition_by", "merge_update_columns")
"""Configs that name top-level columns of the model. `merge_exclude_columns` may name one that only the table still has."""

SQL_ONLY = ("view", "ephemeral", "materialized_view")

OptionFindings = Callable[[Mapping[str, Any]], Iterable[str]]
"""Finds what is wrong with `hoodie.*` options, one text each."""


def check_all(*checks: Callable[[], None]) -> None:
    """Run every check and raise one `DbtConfigError` with all findings, so that a project can be corrected in one go."""
    if found := [text for check in checks if (text := _finding(check))]:
        raise DbtConfigError("\n".join(found))


def _finding(check: Callable[[], None]) -> str | None:
    try:
        check()
    except DbtConfigError as error:
        return str(error.msg)
    return None


def check_threads(threads: Any) -> None:
    """Raise `DbtConfigError` for a thread count below one. dbt would end in a Python error."""
    if isinstance(threads, int) and threads < 1:
        raise DbtConfigError(f"threads is 1 or more, not {threads}: correct the profile's 'threads', or --threads")


def check_profile(hoodie: Mapping[str, Any], option_findings: OptionFindings) -> None:
    """Check the profile's defaults for every table. Raises `DbtConfigError` with all findings."""
    refuse(f"hoodie of the profile: {text}" for text in option_findings(hoodie))


def check_nodes(nodes: Mapping[str, Any], project: str, macros: Collection[str], option_findings: OptionFindings) -> None:
    """Check the enabled models, seeds and snapshots of a manifest.

    `macros` are the names of all macros (a strategy may be the user's own); `option_findings` finds unknown `hoodie.*` keys. Raises one
    `DbtConfigError` with all findings.
    """
    found = [text for node in nodes.values() for text in _findings(node, project, macros, option_findings)]
    found += _one_relation_twice(nodes)
    refuse(found)


def check_sources(sources: Iterable[Any], nodes: Mapping[str, Any]) -> None:
    """Refuse a source that reads files and has the name of a model's relation: the name would be ambiguous.

    Raises `DbtConfigError`.
    """
    built = {(str(node.schema).lower(), str(node.alias).lower()): node for node in nodes.values() if _leaves_relation(node)}
    findings = []
    for source in sources:
        node = built.get((str(source.schema).lower(), str(source.identifier).lower()))
        if node is not None and (source.meta or {}).get(META) is not None:
            built_by = node_label(node)
            findings.append(
                f"{source_label(source)} reads files as {node.schema}.{node.alias}, which {built_by} builds: give it another schema"
            )
    refuse(findings)


def _leaves_relation(node: Any) -> bool:
    return str(getattr(node, "resource_type", "")) in CHECKED and node.config.get("materialized") != "ephemeral"


def _findings(node: Any, project: str, macros: Collection[str], option_findings: OptionFindings) -> Iterator[str]:
    if str(getattr(node, "resource_type", "")) not in CHECKED:
        return
    config = node.config
    name = node_label(node)
    found = list(config_findings(name, config, list(getattr(config, "_extra", {})), strict=node.package_name == project))
    yield from found
    yield from _language_findings(name, node)
    yield from strategy_findings(name, config, macros)
    if not found:
        yield from _contract_findings(name, node)
    services = service_options(config) if not found else {}  # only for services with readable configs
    hoodie = config.get("hoodie")
    given = {key: value for key, value in hoodie.items() if key not in CONFIG_OF_OPTION} if isinstance(hoodie, Mapping) else {}
    told = option_findings({**services, **given})
    yield from (f"{name}: {in_short_names(text, config) if services else text}" for text in told)


def _language_findings(name: str, node: Any) -> Iterator[str]:
    materialized = node.config.get("materialized")
    if str(getattr(node, "language", "")) == "python" and materialized in SQL_ONLY:
        yield f"{name}: a Python model is a table, incremental or external, not '{materialized}': dbt.config(materialized=\"table\")"


def _contract_findings(name: str, node: Any) -> Iterator[str]:
    """Columns that configs name but an enforced contract, which lists all columns of the model, does not."""
    contract, columns = getattr(node.config, "contract", None), list(getattr(node, "columns", None) or {})
    if not getattr(contract, "enforced", False) or not columns or node.config.get("materialized") not in STORED:
        return
    for key in OF_COLUMNS:
        for column in missing_names([one.strip("`") for one in names(node.config.get(key))], columns):
            yield f"{name}: {key} names the column '{column}', which the contract does not have{did_you_mean(column, columns)}"


def _one_relation_twice(nodes: Mapping[str, Any]) -> Iterator[str]:
    """Nodes whose relations differ only in case. They are one relation here, so the second would overwrite the first. dbt compares names as
    written, and has already refused equal ones.
    """
    owners: dict[tuple[str, str], Any] = {}
    for node in nodes.values():
        if not _leaves_relation(node):
            continue
        owner = owners.setdefault((str(node.schema).lower(), str(node.alias).lower()), node)
        if owner is not node:
            mine, theirs = f"{node.schema}.{node.alias}", f"{owner.schema}.{owner.alias} of {node_label(owner)}"
            yield f"{node_label(node)}: its {mine} is {theirs}, as the case of names does not count: give one another alias"
