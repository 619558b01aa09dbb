"""The example of each config in docs/dbt.md: all of them are there, and each is accepted."""

from __future__ import annotations

import yaml

from dbt.adapters.lakehouse.config.keys import OWN_KEYS
from dbt.adapters.lakehouse.config.service_config import SERVICES, service_options
from lakehouse_engine.api.options import option_findings
from lakehouse_engine.options import check_known
from tests.dbt.unit.checking import check_config
from tests.support.documents import blocks

OF_DBT = ("materialized", "unique_key", "incremental_strategy", "on_schema_change")
NOT_SHOWN = ("predicates",)
"""dbt-core's older name of another one."""


def examples() -> dict[str, dict[str, object]]:
    [block] = [block.code for block in blocks("docs/dbt.md", "yaml") if "+unique_key" in block.code]
    models = yaml.safe_load(block)["models"]["shop"]
    return {name: {key.removeprefix("+"): value for key, value in config.items()} for name, config in models.items()}


def test_every_config_has_an_example() -> None:
    shown = {key for config in examples().values() for key in config}
    assert [key for key in (*OWN_KEYS, *OF_DBT) if key not in shown and key not in NOT_SHOWN] == []


def test_every_name_of_the_services_has_an_example() -> None:
    for service, names in SERVICES.items():
        shown = {name for config in examples().values() for name in config.get(service, {})}  # type: ignore[attr-defined]
        left = [name for name in names if name not in shown]
        assert [name for name in left if name != "commits_retained"] == [], service


def test_the_examples_are_accepted() -> None:
    for name, config in examples().items():
        check_config(name, config, [key for key in config if key not in OF_DBT])
        given = {**service_options(config), **(config.get("hoodie") or {})}
        assert (option_findings(given), check_known(given)) == ([], [])
