"""A table as it is at one moment: everything that planning asks, in one value."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial

from lakehouse_engine.errors import (
    CorruptInstantError,
    FormatError,
    InstantNotFoundError,
    MetadataError,
    StoredFileNotFoundError,
    UnsupportedTableVersionError,
)
from lakehouse_engine.format.timeline.layout import Layout, layout_of
from lakehouse_engine.format.timeline.layout_v1 import LayoutV1
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import LiveFiles, WriteRecord
from lakehouse_engine.model.order import Order
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.checkpoints import SAVEPOINTED, LiveCheckpoints
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.history import History, archived_moments, history_of
from lakehouse_engine.timeline.presence import check_there
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.archived_files import ArchivedFiles, read_archived_files
from lakehouse_engine.view.decoded import DECODED, DecodedCommit
from lakehouse_engine.view.file_system_view import FileSystemView, has_data
from lakehouse_engine.view.listings.flat_listing import lister_of
from lakehouse_engine.view.listings.kept import KeptAt, KeptPartitions
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.listings.named import NamedFiles
from lakehouse_engine.view.news import Moment
from lakehouse_engine.view.planned import planned_slices
from lakehouse_engine.view.restores import pending_restore
from lakehouse_engine.view.slicing import replaced_groups

logger = logging.getLogger(__name__)

_Write = tuple[Instant, StoredFile | None]


@dataclass(frozen=True, slots=True)
class _Partitions:
    """Paths of the partitions that have files (`live`) once `writes` are counted after what archived ones left."""

    archived: LiveFiles
    writes: tuple[_Write, ...]
    live: LiveFiles
    paths: tuple[str, ...]

    def are_of(self, archived: LiveFiles, writes: tuple[_Write, ...]) -> bool:
        return self.are_before(archived, writes) and len(self.writes) == len(writes)

    def are_before(self, archived: LiveFiles, writes: tuple[_Write, ...]) -> bool:
        """Whether the same writes come first, after the same archived ones."""
        return (self.archived is archived or not (len(archived) or len(self.archived))) and self.writes == writes[: len(self.writes)]


@dataclass(slots=True)
class _Box:
    """The partitions that the last of several states asked for; shared by all that go on with one another's commits."""

    found: _Partitions | None = None


@dataclass(slots=True)
class _Commits:
    """Decoded metadata of completed writes, which never changes, so a refreshed state goes on with it."""

    active: ActiveTimeline
    files: Mapping[Instant, StoredFile]
    known: dict[Instant, DecodedCommit] = field(default_factory=dict)
    partitions: _Box = field(default_factory=_Box)

    def of(self, instant: Instant) -> HoodieCommitMetadata:
        return self._decoded(instant).metadata

    def record(self, instant: Instant) -> WriteRecord:
        """What the write left and took away."""
        return self._decoded(instant).record

    def named(self, instant: Instant) -> frozenset[str] | None:
        """Names of the files that the write left, None where it does not tell all of them."""
        return self._decoded(instant).names

    def at(self, active: ActiveTimeline, files: Mapping[Instant, StoredFile]) -> _Commits:
        """The same, of instants that are on the timeline still, in the files that they were read from."""
        known = {one: decoded for one, decoded in self.known.items() if one in files and files[one] == self.files.get(one)}
        return _Commits(active, files, known, self.partitions)

    def live_partitions(self, archived: LiveFiles, writes: Sequence[Instant]) -> tuple[str, ...] | None:
        """Partitions with files after these writes, and `archived`, sorted; None where one of the writes does not tell what it left."""
        key = tuple((one, self.files.get(one)) for one in writes)
        found = self.partitions.found
        if found is None or not found.are_of(archived, key):
            if any(self.named(one) is None for one in writes):
                return None
            known = 0 if found is None or not found.are_before(archived, key) else len(found.writes)
            live = found.live if found is not None and known else archived
            live = live.after(self.record(one) for one in writes[known:])
            found = self.partitions.found = _Partitions(archived, key, live, tuple(sorted(live.partitions())))
        return found.paths

    def _decoded(self, instant: Instant) -> DecodedCommit:
        found = self.known.get(instant)
        if found is None:
            found = self.known[instant] = DECODED.get(self.active, instant, self.files.get(instant))
        return found


@dataclass(slots=True)
class _Archived:
    """What archived writes left, read when it is first asked for."""

    storage: Storage
    config: TableConfig
    layout: Layout
    timeline: Timeline
    is_there: bool = True
    found: ArchivedFiles | None = None
    savepointed: dict[str, LiveFiles | None] = field(default_factory=dict)
    listing: list[StoredFile] | None = None

    def files(self) -> ArchivedFiles:
        if self.found is None:
            self.found = read_archived_files(self.storage, self.layout, self.archive, self.listed(), self.timeline)
        return self.found

    def listed(self) -> list[StoredFile]:
        """The files of the archive, of which there may be many: its folder is listed once."""
        if self.listing is None:
            self.listing = self.archive.listed() if self.is_there else []
        return self.listing

    @property
    def archive(self) -> History:
        return history_of(self.storage, self.layout, self.config)

    def as_of(self, savepoint: str) -> LiveFiles | None:
        if savepoint not in self.savepointed:
            self.savepointed[savepoint] = self._kept(savepoint)
        return self.savepointed[savepoint]

    def _kept(self, savepoint: str) -> LiveFiles | None:
        try:
            return LiveCheckpoints(self.storage, SAVEPOINTED).read(savepoint).live
        except StoredFileNotFoundError:
            return None
        except FormatError as error:
            logger.warning("the savepoint %s of %s is read without it: %s", savepoint, self.storage.root, error.message)
            return None


@dataclass(frozen=True, slots=True)
class TableState:
    """Configuration, timeline and file-system view of one moment; later commits do not show in it. Made by `load`.

    A restore counts from the moment on at which its plan is on the timeline: writes that it takes back do not show.
    """

    storage: Storage
    config: TableConfig
    layout: Layout
    timeline: Timeline
    view: FileSystemView
    _commits: _Commits = field(repr=False, compare=False)
    _archived: _Archived = field(repr=False, compare=False)
    _kept: KeptPartitions = field(repr=False, compare=False)
    _folders: frozenset[str] | None = field(default=None, repr=False, compare=False)
    """Names of the directories that were beside the timeline when it was listed; None where that says nothing."""
    completed_again: tuple[StoredFile, ...] = field(default=(), repr=False, compare=False)
    """As `ActiveTimeline.completed_again`, of that listing."""

    @classmethod
    def load(cls, storage: Storage) -> TableState:
        """Read the configuration and list the timeline; data files are listed, and commits opened, when they are asked for.

        Raises `TableNotFoundError`, `PropertiesError`, and `UnsupportedTableVersionError` for a table version that cannot be opened.
        """
        return cls._load(storage, None, KeptPartitions())

    @property
    def active(self) -> ActiveTimeline:
        """The active timeline's files, as they are when each is asked for."""
        return self._commits.active

    @property
    def order(self) -> Order:
        """Which instant comes after which."""
        return self.timeline.order

    def refresh(self) -> TableState:
        """The table as it is now, with what is known of commits that are still on the timeline. Data files are listed anew."""
        return self._load(self.storage, self._commits, KeptPartitions())

    def advance(self) -> TableState:
        """As `refresh`, but partitions that no instant touched since they were listed, for this state or for one that it shares listings
        with, are not listed again: a file that was lost since then shows when it is opened (docs/adr/0026).
        """
        return self._load(self.storage, self._commits, self._kept)

    def is_still(self, now: TableState) -> bool:
        """Whether nothing has happened to the table between this state and a later one: no instant, and no change of its properties."""
        return (self.timeline, self.config) == (now.timeline, now.config)

    def up_to(self, moment: str) -> TableState:
        """The table as if nothing had happened after `moment`: no later instant is opened."""
        timeline, commits = self.timeline.up_to(moment), self._commits
        named = NamedFiles(timeline, commits.named, self._archived.files)
        lister, planned = StorageLister(self.storage), cache(partial(planned_slices, self.active, timeline))
        view = FileSystemView(lister, timeline, lambda: _replaced(timeline, commits), is_named=named.has, planned=planned)
        return TableState(self.storage, self.config, self.layout, timeline, view, commits, self._archived, KeptPartitions(), self._folders)

    def may_have_folder(self, path: str) -> bool:
        """Whether anything may be in a folder of the timeline's: False where its listing, which is of one moment with the timeline, told
        that there is no such folder. In an object store one is there as long as an object is in it, and looking is a request; elsewhere it
        may be a link, which no listing shows.
        """
        folder, _, below = path.partition("/")
        if self._folders is None or folder != self.layout.timeline_folder or not below:
            return True
        return below.partition("/")[0] in self._folders

    def commit_metadata(self, instant: Instant) -> HoodieCommitMetadata:
        """Metadata of a completed write, decoded once.

        Raises `InstantNotFoundError` when it is not (any more) on the timeline or not a completed write, and `CorruptInstantError` when its
        file is empty or torn.
        """
        if not (instant.is_completed and instant.action.is_write):
            raise InstantNotFoundError(f"{instant} is not a completed write, and has no commit metadata", table=self.storage.root)
        return self._commits.of(instant)

    @property
    def timeline_files(self) -> Mapping[Instant, StoredFile]:
        """The file of each state of each instant, as they were listed."""
        return self._commits.files

    def named_files(self, instant: Instant) -> frozenset[str] | None:
        """Names of the data files of a completed write of the active timeline, None where it does not tell all of them; raises as
        `commit_metadata`.
        """
        return self._commits.named(instant)

    def archived_files(self) -> ArchivedFiles:
        """Which files archived writes left, as far as that is known; damage of what tells of them is no error, but in its `problems`."""
        return self._archived.files()

    @property
    def archived_timeline(self) -> History:
        """The archive, read anew by each method."""
        return self._archived.archive

    @property
    def has_archive(self) -> bool:
        """Whether anything was ever archived."""
        return bool(self._archived.listed())

    def savepointed_files(self, moment: str) -> LiveFiles | None:
        """Which files there were as of a savepointed write that is archived; None where that is not known."""
        savepoint = self.timeline.savepoint_at(moment)
        return None if savepoint is None else self._archived.as_of(savepoint)

    def write_record(self, instant: Instant) -> WriteRecord:
        """What a completed write of the active timeline left and took away, worked out once; raises as `commit_metadata`."""
        return self._commits.record(instant)

    def active_writes(self, as_of: str | None = None) -> Iterator[WriteRecord]:
        """What the completed writes of the active timeline up to `as_of` (None: all) left, oldest first; raises as `commit_metadata`."""
        for instant in self.timeline.completed().writes().up_to(as_of):
            yield self._commits.record(instant)

    def live_partitions(self) -> list[str]:
        """Partitions in which completed writes left files that nothing replaced, sorted. No directory of data is listed where commits and
        checkpoint tell; `view.partitions()` where they do not.
        """
        archived = self.archived_files()
        if archived.is_known:
            with suppress(MetadataError):
                # Another writer's commits may not say what they wrote.
                found = self._commits.live_partitions(archived.live, self.timeline.completed().writes().instants)
                if found:
                    return list(found)
        return self.view.partitions()

    @classmethod
    def _load(cls, storage: Storage, known: _Commits | None, store: KeptPartitions) -> TableState:
        config = ConfigStore(storage).read()
        layout = _supported_layout(config, storage)
        active = ActiveTimeline(storage, layout)
        listing = active.listed()
        # Of a table that is being dropped a listing may show a part: that would pass for a table with fewer rows.
        check_there(storage, listing)
        files, folders = active.files_of(listing), frozenset(entry.name for entry in listing if entry.is_directory)
        _refuse_half_upgraded(storage, config, layout, files)
        moments = archived_moments(storage, layout, config)
        timeline = Timeline.of_states(files, by_completion=layout.orders_by_completion, archived=moments)
        restore = pending_restore(active, timeline)
        if restore is not None:
            timeline = timeline.as_restored(restore.target)
        commits = known.at(active, files) if known is not None else _Commits(active, files)
        shown = folders if in_object_store(storage) else None
        has_archive = shown is None or history_of(storage, layout, config).folder.partition("/")[0] in shown
        archived = _Archived(storage, config, layout, timeline, has_archive)
        lister = lister_of(storage, partitioned=bool(config.partition_fields))
        named = NamedFiles(timeline, commits.named, archived.files)
        planned = cache(partial(planned_slices, active, timeline))
        kept = KeptAt(
            store,
            Moment(config, timeline, active, files, commits.of),
            lambda: (timeline.start, timeline.pending_compactions, archived.files().marks, frozenset(planned().items())),
            named.has_log,
            lambda path: lister.is_partition(path) or has_data(lister, path),
        )
        replaced, paths = partial(_replaced, timeline, commits), partial(_named_partitions, timeline, commits, archived)
        view = FileSystemView(lister, timeline, replaced, paths, named.has, kept, planned)
        again = active.completed_again(listing, files)
        return cls(storage, config, layout, timeline, view, commits, archived, store, shown, again)


def _refuse_half_upgraded(storage: Storage, config: TableConfig, layout: Layout, files: Mapping[Instant, StoredFile]) -> None:
    """Raise `UnsupportedTableVersionError` where the properties are of version 8 or 9 and the instants of version 6: no row would show."""
    if not layout.orders_by_completion or files:
        return
    older = ActiveTimeline(storage, LayoutV1()).load().completed().last()
    if older is not None:
        raise UnsupportedTableVersionError(
            f"hoodie.table.version is {int(config.version)}, and {older} is where version 6 has its instants: an upgrade was not finished,"
            " or the properties are not this table's; let Hudi finish it (CALL upgrade_table), or put hoodie.properties back from a backup"
            " (.hoodie/.aux/hoodie.properties is as this engine wrote it last)",
            table=config.name,
            path=storage.root,
        )


def _supported_layout(config: TableConfig, storage: Storage) -> Layout:
    try:
        return layout_of(config)
    except UnsupportedTableVersionError as error:
        raise UnsupportedTableVersionError(error.message, **{**error.context, "table": config.name, "path": storage.root}) from error


def _replaced(timeline: Timeline, commits: _Commits) -> dict[FileGroupId, str]:
    """Every group that a completed replace commit names, with the time of the first that does."""
    replaced: dict[FileGroupId, str] = {}
    for instant in timeline:
        if instant.is_completed and instant.action is Action.REPLACE_COMMIT:
            for group in replaced_groups(commits.of(instant)):
                replaced.setdefault(group, instant.requested_time)
    return replaced


def _named_partitions(timeline: Timeline, commits: _Commits, archived: _Archived) -> set[str]:
    """Partitions that writes left files in. A torn commit names none here: whoever needs what it wrote is told so."""
    named = archived.files().live.partitions()
    for instant in timeline.completed().writes():
        with suppress(CorruptInstantError):
            named.update(path for path, stats in commits.of(instant).partition_to_write_stats.items() if stats)
    return named
