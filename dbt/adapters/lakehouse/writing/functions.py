"""Function nodes, in the form that the engine stores."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.validation import function_of
from dbt.adapters.lakehouse.work.model_packages import missing

_DETERMINISTIC = {"deterministic": True, "non-deterministic": False}


def stored_function(model: Mapping[str, Any]) -> Any:
    """Function of a node, as the engine stores it.

    Raises `DbtRuntimeError` for Python that this process cannot run, and for defaults that are not SQL.
    """
    config = model["config"]
    language = str(model.get("language") or "sql")
    if language == "python":
        _check_python(model["name"], config)
    volatility = config.get("volatility")
    return function_of(
        language,
        [(one["name"], one["data_type"], _default(model["name"], one)) for one in model.get("arguments") or ()],
        model["returns"]["data_type"],
        str(model["compiled_code"]),
        aggregate=_text(config.get("type")) == "aggregate",
        deterministic=_DETERMINISTIC.get(_text(volatility)),
        entry_point=config.get("entry_point") or "",
    )


def default_text(value: Any) -> str | None:
    """A YAML default as SQL: numbers, true and false unchanged, text as the SQL expression that it holds."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _default(name: str, argument: Mapping[str, Any]) -> str | None:
    value = argument.get("default_value")
    if isinstance(value, (dict, list)):
        raise DbtRuntimeError(f"{name}: the default_value of '{argument['name']}' is no SQL expression: {value}")
    return default_text(value)


def _check_python(name: str, config: Mapping[str, Any]) -> None:
    running = ".".join(platform.python_version_tuple()[:2])
    wanted = str(config.get("runtime_version"))
    if wanted != running:
        raise DbtRuntimeError(
            f"{name}: runtime_version is {wanted}, but functions run in the Python that runs dbt, which is {running};"
            f" say '{running}', or run dbt in {wanted}"
        )
    for package in config.get("packages") or ():
        if (why := missing(str(package))) is not None:
            raise DbtRuntimeError(
                f"{name}: the package {package} is not installed here ({why}); install it where dbt and Spark's workers run"
            )


def _text(value: Any) -> str:
    return str(getattr(value, "value", value) or "")
