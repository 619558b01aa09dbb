"""Plans a change of a table's version, or explains why it cannot be made. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse_engine.commit.concurrency.pending import pending_groups
from lakehouse_engine.errors import OptionError, VersionChangeError
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.format.v8.changed_properties import ChangedProperties, moves_timeline, properties_in
from lakehouse_engine.index.hbase.entries import has_hbase_index
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.order import Order, in_time_order
from lakehouse_engine.model.table_config import WRITERS_NAME_LOGS_KEY, TableConfig, TableType
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.services.compact.plan import compactable
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.other_layout import LATER_FOLDER, is_moving
from lakehouse_engine.view.plans import is_plan
from lakehouse_engine.view.table_state import TableState

_SERVICES = (Action.COMPACTION, Action.LOG_COMPACTION)
_ENDS_ITSELF = (*_SERVICES, Action.CLEAN)
"""Actions whose pending instants are carried out before the version changes."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The changed properties for version `to`; `moves` is True if the timeline is written in another layout."""

    to: TableVersion
    properties: ChangedProperties
    moves: bool
    config: TableConfig

    @property
    def notes(self) -> tuple[str, ...]:
        return self.properties.notes


def target_of(config: TableConfig, to: object, *, upgrade: bool) -> TableVersion:
    """The requested version. Raises `OptionError` for an unknown one, and for one in the other direction."""
    known = {str(int(version)): version for version in TableVersion}
    found = known.get(str(to).strip()) if not isinstance(to, bool) else None
    if found is None:
        raise OptionError(f"to={to!r} is no table version; give one of {', '.join(known)}", table=config.name)
    if found is not config.version and (found > config.version) is not upgrade:
        other = "downgrade" if upgrade else "upgrade"
        raise OptionError(f"the table has version {int(config.version)}: version {int(found)} is reached by `{other}`", table=config.name)
    return found


def plan_change(state: TableState, to: TableVersion) -> PlannedChange:
    """Plan the change. Raises `VersionChangeError` if something would be lost, or another program has to finish what it began."""
    config = state.config
    properties, moves = properties_in(config, to), moves_timeline(config, to)
    _check_pending(state)
    _check_hbase_index(state, to)
    notes = properties.notes
    if moves:
        _check_archive(state)
        notes += tuple(_to_six(state)) if to is TableVersion.SIX else tuple(_to_later(state))
    changes = dict(properties.changes)
    if moves and to is TableVersion.SIX and config.table_type is TableType.MERGE_ON_READ:
        changes[WRITERS_NAME_LOGS_KEY] = state.timeline.newest_time or None
    return PlannedChange(to, ChangedProperties(changes, notes), moves, config.with_properties(changes))


def steps_of(state: TableState, planned: PlannedChange) -> tuple[str, ...]:
    """Descriptions of the steps, in order."""
    return tuple(_steps(state, planned))


def _steps(state: TableState, planned: PlannedChange) -> Iterator[str]:
    if state.config.version is planned.to:
        return
    for instant in state.timeline.pending():
        if instant.action in _ENDS_ITSELF:
            yield f"carry out the pending {instant.action} {instant.requested_time}"
        elif not is_plan(state, instant) and instant.action is not Action.SAVEPOINT:
            yield f"take back what is left of {instant}"
    if state.config.table_type is TableType.MERGE_ON_READ and (slices := compactable(state)):
        yield f"compact {len(slices)} file slices with logs"
    if state.config.metadata_partitions:
        yield f"drop the metadata table ({', '.join(state.config.metadata_partitions)}), which Hudi builds again when it writes next"
    if planned.moves:
        folder = ".hoodie" if planned.to is TableVersion.SIX else LATER_FOLDER
        yield f"write the {len(state.timeline_files)} state files of the timeline to {folder}"
        archived = len(state.archived_timeline.instants())
        if archived:
            yield f"write {archived} archived instants to the archive of version {int(planned.to)}"
    yield f"set hoodie.table.version={int(planned.to)}, and the properties that go with it: {_told(planned.properties)}"
    if planned.moves:
        yield f"remove the timeline of version {int(state.config.version)}"


def _told(properties: ChangedProperties) -> str:
    found = ((key, "removed" if value is None else value) for key, value in sorted(properties.changes.items()))
    return ", ".join(f"{key}={value}" for key, value in found if key != "hoodie.table.version")


def _check_pending(state: TableState) -> None:
    for instant in state.timeline.pending():
        if instant.action is Action.INDEXING:
            raise VersionChangeError(
                "an index of this table is to be built, or is being built; run its plan, or drop the index",
                instant=instant,
                table=state.config.name,
            )


def _check_hbase_index(state: TableState, to: TableVersion) -> None:
    if to is not TableVersion.SIX and has_hbase_index(state.config):
        raise VersionChangeError(
            "only tables of version 6 have an HBASE index; set hoodie.index.type=GLOBAL_SIMPLE in the table's properties, and its writes"
            " look into the files",
            table=state.config.name,
        )


def _check_archive(state: TableState) -> None:
    for file, error in state.archived_timeline.damaged():
        raise VersionChangeError(
            f"the archive is damaged ({error.message}), and what is in it would be lost; `repair` sees to it",
            path=file.path,
            table=state.config.name,
        ) from error


def _to_later(state: TableState) -> Iterator[str]:
    config = state.config
    if config.archive_folder.partition("/")[0] == LATER_FOLDER.rpartition("/")[2]:
        raise VersionChangeError(
            f"hoodie.archivelog.folder={config.archive_folder!r} is where version 8 has its timeline; let Hudi upgrade the table",
            table=config.name,
        )
    if state.may_be_moving and not is_moving(state.storage):
        raise VersionChangeError(
            f"there is a folder {LATER_FOLDER}, which a table of version 6 does not have; where Hudi left it in an upgrade that died, let"
            " Hudi finish that, else remove the folder",
            table=config.name,
        )
    yield from ()


def _to_six(state: TableState) -> Iterator[str]:
    config = state.config
    if not is_moving(state.storage) and ActiveTimeline(state.storage, FormatV6()).files():
        raise VersionChangeError(
            "there are instants of version 6 in .hoodie beside the timeline of the table; where Hudi left them in an upgrade or downgrade"
            " that died, let Hudi finish that, else remove them",
            table=config.name,
        )
    clustered = pending_groups(state)
    newest = state.view.latest_slices() if clustered else ()
    held = [piece for piece in newest if piece.log_files and (piece.partition_path, piece.file_id) in clustered]
    if held:
        raise VersionChangeError(
            f"the pending clustering {clustered[held[0].partition_path, held[0].file_id]} has file groups with logs in its plan, which"
            " cannot be compacted before it, and which Hudi 0.x would read wrong; run it (`cluster`), or roll it back with Hudi",
            partition=held[0].partition_path,
            file_id=held[0].file_id,
            table=config.name,
        )
    writes = state.timeline.completed().writes().instants
    requested = in_time_order(writes, lambda one: one.requested_time)
    overtaken = [one.requested_time for one, other in zip(writes, requested, strict=True) if one != other]
    if overtaken:
        yield (
            f"{len(overtaken)} commits were completed in another order than they were requested, the first is"
            f" {Order.by_request().oldest(overtaken)}: version 6 shows them in the order of their requested times, as of a moment and since"
            " one"
        )
    if config.table_type is TableType.MERGE_ON_READ and any(map(_is_named_by_writers, _slices(state))):
        yield (
            "earlier versions of file groups keep logs that version 8 named: this engine reads them as of earlier moments, and so can"
            " restore savepoints on them; Hudi reads them wrong there, also once it downgraded a table itself"
        )


def _slices(state: TableState) -> Iterator[FileSlice]:
    for partition in state.view.partitions():
        for group in state.view.file_groups(partition):
            yield from group.slices


def _is_named_by_writers(piece: FileSlice) -> bool:
    """True if version 6 would give a log of the slice another name."""
    return any(log.instant_time != piece.base_instant for log in piece.log_files)
