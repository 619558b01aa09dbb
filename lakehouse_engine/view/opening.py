"""Opens a table: its properties, and a listing of the timeline that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse_engine.errors import UnsupportedTableVersionError
from lakehouse_engine.format.table_format import TableFormat, format_of
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.format.v8.table_format import FormatV8
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.other_layout import LATER_FOLDER, is_moving, may_be_moving
from lakehouse_engine.timeline.presence import check_there


@dataclass(frozen=True, slots=True)
class Look:
    """Properties and timeline of one moment. `may_be_moving`: a change of the table's version may be running, or was interrupted."""

    config: TableConfig
    active: ActiveTimeline
    listing: Sequence[StoredFile]
    may_be_moving: bool = False


def look_at(storage: Storage) -> Look:
    """Read the properties and list the timeline.

    A version change removes the timeline that the old properties meant. In version 6 the listing shows that there is another one; that of
    later versions may be gone entirely. Then the properties are read again. Raises `TableNotFoundError`, `PropertiesError`, and
    `UnsupportedTableVersionError` for an unsupported version, and for a table that Hudi left half upgraded.
    """
    config = ConfigStore(storage).read()
    while True:
        active = ActiveTimeline(storage, _supported_layout(config, storage))
        listing = active.listed()
        moving = may_be_moving(active.format, listing)
        if not (moving or active.format.orders_by_completion):
            # The listing of a table that is being dropped may be partial, and would look like a table with fewer rows.
            check_there(storage, listing)
            return Look(config, active, listing)
        now = ConfigStore(storage).read()
        if now.version is config.version:
            if moving:
                _refuse_half_upgraded(now, active, listing)
            return Look(now, active, listing, moving)
        config = now


def _refuse_half_upgraded(config: TableConfig, active: ActiveTimeline, listing: Sequence[StoredFile]) -> None:
    """Raise `UnsupportedTableVersionError` if properties and instants belong to different versions, which would not be visible: Hudi moves
    instants one by one and changes the properties last. What this engine moves exists twice.
    """
    storage, later = active.storage, active.format.orders_by_completion
    if active.files_of(listing) if later else is_moving(storage):
        return
    elsewhere = ActiveTimeline(storage, FormatV6() if later else FormatV8(LATER_FOLDER)).load().completed().last()
    if elsewhere is not None:
        raise UnsupportedTableVersionError(
            f"hoodie.table.version is {int(config.version)}, and {elsewhere} is where version {'6 has its' if later else '8 or 9 has its'}"
            " instants: an upgrade was not finished, or the properties are not this table's; let Hudi finish it (CALL upgrade_table), or"
            " put hoodie.properties back from a backup (.hoodie/.aux/hoodie.properties is as this engine wrote it last)",
            table=config.name,
            path=storage.root,
        )


def _supported_layout(config: TableConfig, storage: Storage) -> TableFormat:
    try:
        return format_of(config)
    except UnsupportedTableVersionError as error:
        raise UnsupportedTableVersionError(error.message, **{**error.context, "table": config.name, "path": storage.root}) from error
