"""The profile: `type: lakehouse` and `schema` are enough."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.names import did_you_mean

METHODS = ("local", "session", "connect")
_PROFILE_KEYS = ("type", "threads")
_NO_CONNECT = "method 'connect' is not available in this version; use 'local', or 'session' with a session of your own."


@dataclass
class LakehouseCredentials(Credentials):
    """Where the tables are and where Spark runs.

    `warehouse` is a directory, relative to the directory that dbt is started in. `method`: `local` starts an embedded Spark on
    first need; `session` uses the active SparkSession of this process. `spark_config` are Spark's own keys; `hoodie` are
    `hoodie.*` defaults for every table. Without `allow_files` statements on files are refused. `jvm_cache`: the folder of class archives
    (docs/adr/0027); with `true` one in the user's cache, with `false` none. Raises `DbtConfigError`.
    """

    database: str | None = None  # type: ignore[assignment]
    schema: str | None = None  # type: ignore[assignment]
    warehouse: str = "./lakehouse"
    method: str = "local"
    spark_config: dict[str, Any] = field(default_factory=dict)
    hoodie: dict[str, Any] = field(default_factory=dict)
    allow_files: bool = True
    jvm_cache: Any = True

    def __post_init__(self) -> None:
        if not self.schema:
            raise DbtConfigError("A lakehouse profile needs a 'schema': the folder of the warehouse that models are built in.")
        if self.database and self.database != self.schema:
            raise DbtConfigError(f"A lakehouse profile has no 'database' (got '{self.database}'): tables are named schema.table.")
        self.database = None
        if "://" not in self.warehouse:
            self.warehouse = str(Path(self.warehouse).expanduser().resolve())
        self.spark_config = {str(key): _text(value) for key, value in self.spark_config.items()}
        self.hoodie = {str(key): _text(value) for key, value in self.hoodie.items()}
        if not isinstance(self.allow_files, bool):
            raise DbtConfigError(f"allow_files is true or false, not '{self.allow_files}'")
        if not isinstance(self.jvm_cache, (bool, str)) or self.jvm_cache == "":
            raise DbtConfigError(f"jvm_cache is true, false or a folder, not '{self.jvm_cache}'")
        self._check_method()

    def _check_method(self) -> None:
        if self.method not in METHODS:
            raise DbtConfigError(f"method '{self.method}' is not one of {', '.join(METHODS)}{did_you_mean(self.method, METHODS)}")
        if self.method == "connect":
            raise DbtConfigError(_NO_CONNECT)

    @classmethod
    def __pre_deserialize__(cls, data: dict[str, Any]) -> dict[str, Any]:
        data = super().__pre_deserialize__(data)
        if data.get("method") == "connect":
            raise DbtConfigError(_NO_CONNECT)
        known = {item.name for item in fields(cls) if not item.name.startswith("_")}
        for key in data:
            if key not in known and key not in _PROFILE_KEYS:
                raise DbtConfigError(f"The profile key '{key}' is not known to the lakehouse adapter{did_you_mean(key, known)}")
        return data

    @property
    def type(self) -> str:
        return "lakehouse"

    @property
    def unique_field(self) -> str:
        return self.warehouse

    def _connection_keys(self) -> tuple[str, ...]:
        return ("schema", "warehouse", "method", "spark_config", "hoodie", "allow_files", "jvm_cache")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
