"""Makes all writers of a table take one lock: lock options of one writer are stored in the table's properties."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from lakehouse_engine.errors import LockError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import STORED_PREFIX, LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.locks.settings import LOCK_KEYS, check_provider_fits, lock_properties

logger = logging.getLogger(__name__)


def agree_on_lock(storage: Storage, config: TableConfig, asked: Mapping[str, Any], *, lock_timeout_ms: int) -> None:
    """Store what `asked` (a writer's options) says about the table's lock; free if the table has it already.

    Other processes, without these options, take the same lock from then on. Raises `LockError` if the table stores something else,
    `OptionError`, `LockTimeoutError`.
    """
    wanted = {LOCK_KEYS[key]: _text(value) for key, value in asked.items() if key in LOCK_KEYS and value is not None and _text(value)}
    if not wanted or not _missing(config, wanted):
        return
    store = ConfigStore(storage)
    config = store.read()
    if not _missing(config, wanted):
        return
    check_provider_fits(storage, LockOptions.read({**lock_properties(config), **wanted}))
    with TableLock(storage, lock_timeout_ms, instead=LockOptions.read(wanted)):
        missing = _missing(store.read(), wanted)
        if missing:
            logger.info("%s keeps %s for all its writers", config.name, ", ".join(f"{key}={value}" for key, value in missing.items()))
            store.update({STORED_PREFIX + key: value for key, value in missing.items()})


def _missing(config: TableConfig, wanted: Mapping[str, str]) -> dict[str, str]:
    kept = lock_properties(config)
    for key, value in wanted.items():
        if key in kept and kept[key].lower() != value.lower():
            raise LockError(
                f"{key}={value} is asked for, and the table keeps {key}={kept[key]}: all its writers need the same. Leave it out, or change"
                f" it for all of them while none is at work (ALTER TABLE ... SET TBLPROPERTIES ('{key}' = '{value}'))",
                table=config.name,
            )
    return {key: value for key, value in wanted.items() if key not in kept}


def _text(value: object) -> str:
    return str(value).strip()
