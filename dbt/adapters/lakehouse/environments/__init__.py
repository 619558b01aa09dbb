"""Where Spark runs: one environment per process and profile, behind one interface."""

from __future__ import annotations

import threading

from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments.base import Environment
from dbt.adapters.lakehouse.environments.connect import ConnectEnvironment
from dbt.adapters.lakehouse.environments.existing import ExistingEnvironment
from dbt.adapters.lakehouse.environments.local import LocalEnvironment

ENVIRONMENTS: dict[str, type[Environment]] = {"local": LocalEnvironment, "session": ExistingEnvironment, "connect": ConnectEnvironment}

_lock = threading.RLock()
_current: dict[tuple[object, ...], Environment] = {}


def environment_of(credentials: LakehouseCredentials) -> Environment:
    """Environment of a profile. Starts nothing; its first `session()` does."""
    place = (credentials.remote, credentials.connect_retries, credentials.connect_timeout) if credentials.method == "connect" else ()
    store = (credentials.warehouse, *sorted(credentials.storage_options.items()), credentials.jars) if credentials.spark_reads else ()
    key = (credentials.method, *place, *store, tuple(sorted(credentials.spark_config.items())))
    with _lock:
        if key not in _current:
            _current[key] = ENVIRONMENTS[credentials.method](credentials)
        return _current[key]


__all__ = ["ENVIRONMENTS", "Environment", "environment_of"]
