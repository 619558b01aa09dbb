"""The profile: `type: lakehouse` and `schema` are enough."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.dataclass_schema import ValidationError
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.config.catalogs import attached, own_name
from dbt.adapters.lakehouse.config.place import Place, check_directory, project_folder
from dbt.adapters.lakehouse.config.remote import Remote
from dbt.adapters.lakehouse.config.stores import READ_FILES, SECRET, ObjectStore, names_s3a, shown_options, text_options
from dbt.adapters.lakehouse.names import did_you_mean

METHODS = ("local", "session", "connect")
_PROFILE_KEYS = ("type", "threads")
_DAY = 24 * 60 * 60
_KINDS = {
    "string": "a text (in quotes, where it looks like a number)",
    "object": "a mapping of keys to values",
    "array": "a list",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_OF_CONNECT = ("url", "host", "port", "token", "connect_retries", "connect_timeout")


@dataclass
class LakehouseCredentials(Credentials):
    """Where the tables are and where Spark runs.

    `warehouse` is a directory, relative to the project (`config/place.py`), or an address in an object store (`s3://bucket/path`, `gs://`,
    `az://`). `storage_options` hold what the standard credential chain does not give, and are never shown. The engine reads a bucket's
    files for Spark unless the folder `jars` has what Spark needs to read them itself (docs/adr/0034).

    `method`: `local` starts an embedded Spark on first need; `session` uses the active SparkSession of this process; `connect` opens
    sessions of the Spark Connect server at `url` (or `host` and `port`) with `token`, which is never part of `url`. An absent server is
    asked again `connect_retries` times, `connect_timeout` seconds apart.

    `spark_config` are Spark's own keys; `hoodie` are `hoodie.*` defaults for every table. Without `allow_files` statements on files are
    refused. `jvm_cache` is the folder of class archives (docs/adr/0027); `true` uses one in the user's cache, `false` none. `catalogs` are
    other warehouses by name, read-only; `catalog` is the name under which others attach this one. Raises `DbtConfigError`.
    """

    database: str | None = None  # type: ignore[assignment]
    schema: str | None = None  # type: ignore[assignment]
    warehouse: str = "./lakehouse"
    storage_options: Any = field(default_factory=dict, repr=False)  # an error about this type would repeat its value
    jars: str | None = None
    method: str = "local"
    spark_config: dict[str, Any] = field(default_factory=dict, repr=False)
    hoodie: dict[str, Any] = field(default_factory=dict)
    allow_files: bool = True
    jvm_cache: Any = True
    url: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    token: str | None = field(default=None, repr=False)
    connect_retries: int | None = None
    connect_timeout: float | None = None
    catalog: str | None = None
    catalogs: Any = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.schema:
            raise DbtConfigError("A lakehouse profile needs a 'schema': the folder of the warehouse that models are built in.")
        if self.database and self.database not in (self.schema, self.catalog):
            raise DbtConfigError(f"A lakehouse profile has no 'database' (got '{self.database}'): tables are named schema.table.")
        # dbt puts the database on everything in the project, so a manifest shows which warehouse its relations belong to
        self.catalog = self.database = own_name(self.catalog)
        if not self.warehouse.strip():  # an environment variable that is not set: the path would be the folder that dbt is started in
            raise DbtConfigError("The profile's 'warehouse' is empty: name a folder, or leave the key out for ./lakehouse.")
        self._given, self._given_catalogs = self.warehouse, self.catalogs
        self.settle(project_folder())
        self.storage_options = text_options(self.storage_options)
        self.spark_config = {str(key): _text(value) for key, value in self.spark_config.items()}
        self.hoodie = {str(key): _text(value) for key, value in self.hoodie.items()}
        if not isinstance(self.allow_files, bool):
            raise DbtConfigError(f"allow_files is true or false, not '{self.allow_files}'")
        if not isinstance(self.jvm_cache, (bool, str)) or self.jvm_cache == "":
            raise DbtConfigError(f"jvm_cache is true, false or a folder, not '{self.jvm_cache}'")
        self._check_method()
        self._check_store()

    def settle(self, project: Path) -> str | None:
        """Resolve relative directories of `warehouse` and `catalogs` against the project's. Warns if `warehouse` stays elsewhere."""
        self.catalogs = attached(self._given_catalogs, self.catalog, lambda folder: str((project / Path(folder).expanduser()).resolve()))
        if "://" in self._given:
            return None
        check_directory("warehouse", self._given)
        place = Place.of(self._given, project)
        self.warehouse = str(place.path)
        return place.warning

    def _check_store(self) -> None:
        store = self.store
        if self.jars is not None:
            if store is None or not store.is_s3:
                raise DbtConfigError("jars is the folder of what Spark reads s3:// with; this warehouse is somewhere else: leave it out")
            if self.method != "local":
                raise DbtConfigError(f"The profile key 'jars' belongs to method 'local'; with '{self.method}' Spark has its jars already")
            self.jars = str(Path(self.jars).expanduser().resolve())
        if self.spark_reads:
            self.hoodie.setdefault(READ_FILES, "SPARK")

    @property
    def store(self) -> ObjectStore | None:
        """The object store of the warehouse; None for a directory."""
        return ObjectStore.of(self.warehouse, self.storage_options)

    @property
    def spark_reads(self) -> bool:
        """True if an embedded Spark reads the object store's files itself: it has the jars, or is told to."""
        if self.method != "local" or (store := self.store) is None or not store.is_s3:
            return False
        choice = self.hoodie.get(READ_FILES, "").upper()
        return choice == "SPARK" or (choice != "ENGINE" and (self.jars is not None or names_s3a(self.spark_config)))

    def _check_method(self) -> None:
        if self.method not in METHODS:
            raise DbtConfigError(f"method '{self.method}' is not one of {', '.join(METHODS)}{did_you_mean(self.method, METHODS)}")
        if self.method == "connect":
            self._check_connect()
            return
        given = [key for key in _OF_CONNECT if getattr(self, key) is not None]
        if given:
            raise DbtConfigError(f"The profile key '{given[0]}' belongs to method 'connect', and this one is '{self.method}'.")

    def _check_connect(self) -> None:
        remote = Remote.of(self.url, self.host, self.port, self.token)
        self.url, self.host, self.port, self.token = remote.bare, None, None, remote.token
        self.connect_retries = 0 if self.connect_retries is None else self.connect_retries
        self.connect_timeout = 10 if self.connect_timeout is None else self.connect_timeout
        if self.connect_retries < 0 or not 0 < self.connect_timeout <= _DAY:  # also for values that are no number
            raise DbtConfigError(f"connect_retries is 0 or more, and connect_timeout more than 0 seconds and at most {_DAY}")
        for key in ("spark.remote", "spark.api.mode"):
            if key in self.spark_config:
                raise DbtConfigError(f"spark_config has '{key}', but with method 'connect' the server is named by 'url'.")

    @property
    def remote(self) -> Remote:
        """The server of method `connect`."""
        return Remote.of(self.url, self.host, self.port, self.token)

    @classmethod
    def validate(cls, data: Any) -> None:
        """Raise `DbtConfigError` for a value of a wrong type, naming its key. dbt's own message shows the value, which may be secret."""
        try:
            super().validate(data)
        except ValidationError as error:
            if not error.path:
                raise
            raise DbtConfigError(f"The profile key '{error.path[0]}' is {_kinds(error)}, not {type(error.instance).__name__}") from None

    @classmethod
    def __pre_deserialize__(cls, data: dict[str, Any]) -> dict[str, Any]:
        data = super().__pre_deserialize__(data)  # type: ignore[no-untyped-call]  # dbt's has no annotations
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

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """What `dbt debug` prints and models see as `target`: nothing secret."""
        ours: Mapping[str, Callable[[], Any]] = {
            "url": lambda: self.remote.shown,
            "spark_config": lambda: _redacted(self.spark_config),
            "storage_options": lambda: shown_options(self.storage_options),
            "catalogs": lambda: {name: place.shown for name, place in self.catalogs.items()},
        }
        for key, value in super().connection_info(with_aliases=with_aliases):
            yield key, ours[key]() if key in ours else value

    def _connection_keys(self) -> tuple[str, ...]:
        place = ("schema", "warehouse", *(("storage_options",) if self.store else ()))
        place += tuple(key for key in ("catalog", "catalogs") if getattr(self, key))
        if self.method == "connect":
            return (*place, "method", "url", "connect_retries", "connect_timeout", "spark_config", "hoodie", "allow_files")
        return (*place, *(("jars",) if self.jars else ()), "method", "spark_config", "hoodie", "allow_files", "jvm_cache")


_SECRET = re.compile(SECRET)


def _redacted(settings: Mapping[str, str]) -> dict[str, str]:
    """Spark's own `spark.redaction.regex`."""
    return {key: "***" if _SECRET.search(key) else value for key, value in settings.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kinds(error: ValidationError) -> str:
    """What the value must be, by the schema that it violates."""
    allowed = [one.get("type") for one in error.validator_value] if error.validator == "anyOf" else [error.validator_value]
    return " or ".join(_KINDS[kind] for kind in allowed if kind in _KINDS)
