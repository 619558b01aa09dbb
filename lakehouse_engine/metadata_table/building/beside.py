"""Builds partitions of a metadata table beside writers (Hudi `RunIndexActionExecutor`).

 1. `begin`, under the table's lock: the build is inflight, its file groups are there, empty, and the partitions are named as in progress.
    From then on each change of the table logs to them too, so nothing has to be caught up with.
 2. `write`, without the lock: the base files, with what the table had at step 1. In each file group they stand before all logs.
 3. `finish`, under the lock: the delta commit of the build is completed
 4. `conclude`, under the same lock: the partitions are named as complete

The delta commit is pending until step 3, which keeps the metadata table from being compacted meanwhile. A build that died before is taken
back (`take_back`); one that died later is concluded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse_engine.errors import IndexingError
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.metadata_table.building.build import build_partition_stats
from lakehouse_engine.metadata_table.building.contents import Contents
from lakehouse_engine.metadata_table.building.entries import SPILL, Entries, build_metadata, definitions_of
from lakehouse_engine.metadata_table.building.groups import PartitionWriter
from lakehouse_engine.metadata_table.building.instants import BuildInstants
from lakehouse_engine.metadata_table.building.naming import name_in_progress, name_partitions, unname_partitions
from lakehouse_engine.metadata_table.building.plans import made_at, newest_contiguous, partitions_of, running
from lakehouse_engine.metadata_table.compaction import schema_text
from lakehouse_engine.metadata_table.partitions import PARTITION_STATS, RECORD_INDEX, SECONDARY_INDEX
from lakehouse_engine.metadata_table.table import METADATA_TABLE, is_in_use, metadata_state
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class Build:
    """A build that has begun: `instant` is inflight in the table, and `delta` in its metadata table. `data` is the table that it reads;
    `counts` has the number of file groups of each partition.
    """

    data: TableState
    contents: Contents
    instant: Instant
    delta: Instant
    counts: Mapping[str, int]
    schema: str


def begin(data: TableState, planned: Instant, counts: Mapping[str, int]) -> Build:
    """Begin to build partitions of a metadata table that is in use. `planned` is requested, and no earlier run of it has left anything."""
    metadata = metadata_state(data)
    delta = BuildInstants(data, metadata).beside(planned)
    content = running(counts, newest_contiguous(data), delta.requested_time)
    inflight = data.active.to_inflight(planned.at(State.REQUESTED), content)
    _remove(data, counts)
    schema = schema_text(metadata)
    begun = metadata.format.encode_commit(build_metadata({}, schema))
    delta = metadata.active.to_inflight(metadata.active.create_requested(delta), begun)
    for name, count in counts.items():
        PartitionWriter(metadata.storage, name, delta.requested_time, schema).open(count)
    contents = Contents(data)
    contents.look()
    name_in_progress(data, list(counts))
    return Build(data, contents, inflight, delta, counts, schema)


def write(build: Build) -> HoodieCommitMetadata:
    """Write the base files; returns the metadata of the delta commit. Raises as `Entries.of`."""
    storage, time = storage_below(build.data.storage, METADATA_TABLE), build.delta.requested_time
    entries, stats = Entries(build.data, build.contents, build.schema, f"{SPILL}{time}"), {}
    for name, count in build.counts.items():
        with entries.of(name, count) as groups:
            stats[name] = tuple(PartitionWriter(storage, name, time, build.schema).fill(groups))
    return build_metadata(stats, build.schema)


def finish(build: Build, metadata: HoodieCommitMetadata, now: TableState, clock: InstantClock) -> None:
    """Complete the delta commit of a build in the table as it is `now`.

    Raises `IndexingError`, with nothing changed, if the build was taken back meanwhile, or something it rests on.
    """
    reason = _overtaken(build, now)
    if reason is not None:
        raise IndexingError(
            f"the index build {build.instant.requested_time} of {now.config.name} cannot be completed: {reason}. Run it again",
            instant=build.instant,
            table=now.config.name,
        )
    state = metadata_state(now)
    state.active.complete(build.delta, state.format.encode_commit(metadata), BuildInstants(now, state).completion_time(clock))


def is_written(data: TableState, instant: Instant) -> bool:
    """True if the delta commit of a build is complete, so that only the names are missing."""
    delta = made_at(data, instant)
    if delta is None or not is_in_use(data):
        return False
    found = metadata_state(data).timeline.find(delta)
    return found is not None and found.is_completed


def conclude(data: TableState, instant: Instant, clock: InstantClock) -> TableState:
    """Name what a build has written, and build what rests on it; returns the state after that. Safe to repeat."""
    planned = partitions_of(data, instant)
    built = [name for name in planned if name in data.config.metadata_partitions_being_built]
    if built:
        name_partitions(data, put=built, define=[one for name in built for one in definitions_of(data, name)])
        data = data.advance()
    if PARTITION_STATS in planned and PARTITION_STATS not in data.config.metadata_partitions:
        data = build_partition_stats(data, clock)
    return data


def take_back(data: TableState, instant: Instant) -> None:
    """Return a build that runs, or whose process died, to its plan: names, files, delta commit, and at last its inflight file. Safe to
    repeat.
    """
    delta = made_at(data, instant)
    names = [name for name in partitions_of(data, instant) if name not in data.config.metadata_partitions]
    if any(name in data.config.metadata_partitions_being_built for name in names):
        unname_partitions(data, names)
    _remove(data, names)
    if delta is not None and is_in_use(data):
        metadata_state(data).active.delete_pending(Instant(delta, Action.DELTA_COMMIT, State.INFLIGHT))
    data.storage.delete_tree(f"{SPILL}{delta}")
    data.active.delete(instant.at(State.INFLIGHT))


def _remove(data: TableState, partitions: Mapping[str, int] | list[str]) -> None:
    for name in partitions:
        data.storage.delete_tree(f"{METADATA_TABLE}/{name}")


def _overtaken(build: Build, now: TableState) -> str | None:
    """Why a build does not fit the table any more; None if it does."""
    if now.timeline.find(build.instant.requested_time) != build.instant:
        return "it was taken back meanwhile, by a rollback, a restore or another program"
    if not is_in_use(now) or any(name not in now.config.metadata_partitions_being_built for name in build.counts):
        return "the metadata table, or what was built in it, was dropped meanwhile"
    metadata = metadata_state(now)
    if metadata.timeline.find(build.delta.requested_time) != build.delta:
        return f"another program took back its delta commit {build.delta.requested_time} in the metadata table"
    if any(_is_rewritten(metadata, name, build.delta) for name in build.counts):
        return "another program compacted what was logged to it meanwhile"
    there = {*now.config.metadata_partitions, *build.counts}
    if RECORD_INDEX not in there and any(name.startswith(SECONDARY_INDEX) for name in build.counts):
        return "the record index, which a secondary index needs, was dropped meanwhile"
    return None


def _is_rewritten(metadata: TableState, partition: str, delta: Instant) -> bool:
    """True if a file group has a base file that is not of the build: its logs are merged without what the build wrote."""
    bases = (entry.name for entry in metadata.storage.list(partition) if not entry.is_directory and is_base_file_name(entry.name))
    return any(parse_base_file(partition, name).instant_time != delta.requested_time for name in bases)
