"""Function nodes of dbt as the engine stores them."""

from __future__ import annotations

import platform
import re
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.writing.functions import default_text, stored_function
from lakehouse_engine.catalog.functions import Language, Parameter, StoredFunction

RUNNING = ".".join(platform.python_version_tuple()[:2])


def node(language: str = "sql", code: str = "x * 2", default: Any = None, **config: Any) -> dict[str, Any]:
    return {
        "name": "twice",
        "language": language,
        "compiled_code": code,
        "arguments": [{"name": "x", "data_type": "bigint", "default_value": default}],
        "returns": {"data_type": "bigint"},
        "config": config,
    }


def test_a_node_in_sql() -> None:
    found = stored_function(node(default=7, type="scalar", volatility="non-deterministic"))
    assert found == StoredFunction(Language.SQL, (Parameter("x", "bigint", "7"),), "bigint", "x * 2", deterministic=False)
    assert stored_function(node(type="aggregate", volatility="stable")).aggregate
    assert stored_function(node(volatility="stable")).deterministic is None
    assert stored_function(node(volatility="deterministic")).deterministic is True


def test_a_node_in_python() -> None:
    found = stored_function(node("python", "def f(x): ...", entry_point="f", runtime_version=RUNNING, packages=["pyarrow>=10", "dbt-core"]))
    assert (found.language, found.entry_point, found.body) == (Language.PYTHON, "f", "def f(x): ...")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"runtime_version": "2.7"}, f"runtime_version is 2.7, but functions run in the Python that runs dbt, which is {RUNNING}"),
        ({"runtime_version": RUNNING, "packages": ["no-such-package==1"]}, "the package no-such-package==1 is not installed here"),
        ({"runtime_version": RUNNING, "packages": ["../x"]}, "the package ../x is not installed here"),
        ({"runtime_version": RUNNING, "packages": ["pyarrow<1"]}, "the package pyarrow<1 is not installed here ('pyarrow' is there as"),
    ],
)
def test_python_that_cannot_run_here_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(DbtRuntimeError, match=re.escape(message)):
        stored_function(node("python", "def f(x): ...", entry_point="f", **config))


def test_defaults_are_sql() -> None:
    given = (None, 0, 1.5, True, "'a'", "current_date()")
    assert [default_text(one) for one in given] == [None, "0", "1.5", "true", "'a'", "current_date()"]
    with pytest.raises(DbtRuntimeError, match="default_value of 'x' is no SQL expression"):
        stored_function(node(default=[1]))
