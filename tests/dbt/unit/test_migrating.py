"""docs/migrating.md against what the adapter does with the configs that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dbt.artifacts.resources.v1.model import ModelConfig
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.config.keys import OWN_KEYS
from dbt.adapters.lakehouse.config.model_config import STRATEGIES
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from tests.dbt.unit.checking import check_config

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "migrating.md").read_text(encoding="utf-8")
DBT_KEYS = {*ModelConfig.__dataclass_fields__, "pre-hook", "post-hook"}
SAID = re.compile(r"`([\w+-]+)(?::[^`]*)?`")


def rows(heading: str) -> list[tuple[str, str]]:
    """The rows of the table under a heading, in two columns."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in section.splitlines() if line.startswith("| ")]
    return [(there, here) for there, here in cells if there != "There"]


def names(heading: str, answer: str) -> list[str]:
    found = [name for there, here in rows(heading) if here.startswith(answer) for name in SAID.findall(there)]
    assert found, f"{heading} has no row that says {answer}"
    return [name for name in found if name not in STRATEGIES]


def check(key: str) -> None:
    check_config("m", {"materialized": "incremental", "unique_key": "id", key: "x"}, [] if key in DBT_KEYS else [key])


@pytest.mark.parametrize("key", [*names("Configs", "refused: "), *names("Strategies", "refused")])
def test_what_is_called_refused_is(key):
    if key == "grants":
        with pytest.raises(DbtConfigError, match="grants"):
            check_config("m", {"grants": {"select": ["x"]}}, [])
        return
    with pytest.raises(DbtConfigError, match=key):
        check(key)


@pytest.mark.parametrize("key", names("Configs", "passed over"))
def test_what_is_called_passed_over_is(key):
    check(key)
    assert key not in OWN_KEYS


@pytest.mark.parametrize("key", names("Configs", "the same"))
def test_what_is_called_the_same_is_a_config(key):
    assert key in OWN_KEYS or key in DBT_KEYS or key == "sql_header"


def test_strategies_that_are_called_the_same_are_ours():
    same = [name for there, here in rows("Strategies") if here == "the same" for name in SAID.findall(there)]
    assert set(same) <= set(STRATEGIES)
    assert len(same) == 3


def test_profile_keys_are_those_of_a_profile():
    known = LakehouseCredentials.__dataclass_fields__
    found = [name for _, here in rows("Profile") for name in SAID.findall(here)]
    assert set(found) - {"session", "connect"} <= set(known)
