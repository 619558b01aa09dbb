"""Brings tables of versions 2 to 5, and of 7, to version 6, as Hudi's handlers do (`TwoToThreeUpgradeHandler` to `FiveToSixUpgradeHandler`,
`SevenToSixDowngradeHandler`).

Their timeline and files are already those of version 6. The differences are missing properties, copies of compaction plans, and the name of
the partition of nulls; their metadata table is dropped. Such a table cannot be opened before.
"""

from __future__ import annotations

from lakehouse_engine.errors import FormatError, VersionChangeError
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.format.v8.changed_properties import VERSION_KEY
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.services import VersionChange
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion, not_opened
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock

_AUX = ".hoodie/.aux"
_METADATA_TABLE = ".hoodie/metadata"
_METADATA_KEYS = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")
_LAYOUT_KEY = "hoodie.timeline.layout.version"
_GENERATOR_KEYS = ("hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type")
_PATH_KEYS = ("hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.partitionpath.urlencode")
_OLD_NULLS = "default"
"""Partition of nulls before version 5 (Hudi `DEPRECATED_DEFAULT_PARTITION_PATH`)."""
_OLDEST, _BRIDGE = 2, 7


def is_brought_to_six(storage: Storage) -> bool:
    """True if the table has a version that `bring_to_six` accepts. Raises as `ConfigStore.read`."""
    return _number(ConfigStore(storage).read()) in {*range(_OLDEST, TableVersion.SIX), _BRIDGE}


def bring_to_six(storage: Storage, *, lock_timeout_ms: int, dry_run: bool = False) -> VersionChange:
    """Bring the table to version 6. A repeated call completes a change that a dead process began.

    Raises `VersionChangeError` for another version, for properties that only its writers know, for a partition of nulls under the old name,
    and for a commit that does not decode; `LockTimeoutError`. Then nothing was changed.
    """
    planned = _plan(storage)
    if dry_run:
        return planned
    with TableLock(storage, lock_timeout_ms):
        done = _plan(storage)
        for path in _copied_plans(storage):
            storage.delete(path)
        ConfigStore(storage).update({**dict.fromkeys(_METADATA_KEYS), _LAYOUT_KEY: "1", VERSION_KEY: str(int(TableVersion.SIX))})
        storage.delete_tree(_METADATA_TABLE)
    return done


def _plan(storage: Storage) -> VersionChange:
    config = ConfigStore(storage).read()
    number = _number(config)
    if number not in {*range(_OLDEST, TableVersion.SIX), _BRIDGE}:
        raise VersionChangeError(not_opened(config.properties[VERSION_KEY]), table=config.name)
    if config.properties.get(_LAYOUT_KEY, "1").strip() != "1":
        raise VersionChangeError(
            f"{_LAYOUT_KEY}={config.properties[_LAYOUT_KEY]!r}: a table of version {number} has the layout 1; Hudi left an upgrade"
            " unfinished, let it finish",
            table=config.name,
        )
    _check_stated(config, number)
    _check_nulls(storage, config, number)
    instants = _check_commits(storage, config)
    steps = []
    if copies := _copied_plans(storage):
        steps.append(f"remove {len(copies)} copies of compaction plans from {_AUX}")
    steps.append(f"set {VERSION_KEY}={int(TableVersion.SIX)}")
    if storage.head(_METADATA_TABLE) is not None:
        steps.append("drop the metadata table, which Hudi builds again when it writes next")
    return VersionChange(from_version=number, to_version=int(TableVersion.SIX), steps=tuple(steps), instants=instants)


def _number(config: TableConfig) -> int:
    text = config.properties[VERSION_KEY].strip()
    return int(text) if text.isascii() and text.isdecimal() else -1


def _check_stated(config: TableConfig, number: int) -> None:
    """Raise `VersionChangeError` for missing properties: before version 3 each writer chose how keys and paths are made, and Hudi relies on
    the upgrading writer.
    """
    lacking = [key for key in _PATH_KEYS if config.partition_fields and not config.properties.get(key)]
    if not any(config.properties.get(key) for key in _GENERATOR_KEYS):
        lacking.insert(0, _GENERATOR_KEYS[0])
    if lacking and number != _BRIDGE:
        raise VersionChangeError(
            f"the properties do not say {lacking[0]}, which writers of version {number} gave with each write; write what they gave into"
            " .hoodie/hoodie.properties",
            table=config.name,
        )


def _check_nulls(storage: Storage, config: TableConfig, number: int) -> None:
    if number >= 5 or not config.partition_fields:
        return
    folder = f"{config.partition_fields[0]}={_OLD_NULLS}" if config.hive_style_partitioning else _OLD_NULLS
    if storage.list(folder):
        raise VersionChangeError(
            f"the partition {folder!r} holds rows without a partition value, which later versions have in __HIVE_DEFAULT_PARTITION__; write"
            " those rows there with Hudi 0.11, and delete the partition",
            table=config.name,
        )


def _check_commits(storage: Storage, config: TableConfig) -> int:
    """Number of state files. Raises `VersionChangeError` if a completed write does not decode."""
    active = ActiveTimeline(storage, FormatV6())
    files = active.files()
    for instant in files:
        if instant.is_completed and instant.action.is_write:
            try:
                active.commit(instant)
            except FormatError as error:
                raise VersionChangeError(f"a commit is damaged: {error.message}", instant=instant, table=config.name) from error
    return len(files)


def _copied_plans(storage: Storage) -> list[str]:
    """Copies of requested compactions in `.aux`, where version 6 does not look (Hudi HUDI-6040)."""
    ending = f".{Action.COMPACTION}.requested"
    return [entry.path for entry in storage.list(_AUX) if entry.name.endswith(ending)]
