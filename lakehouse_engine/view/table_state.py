"""A table at one moment: everything that planning needs, in one value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from lakehouse_engine.errors import (
    InstantNotFoundError,
)
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.manifest.archived_files import ArchivedFiles
from lakehouse_engine.manifest.commits import Archived, Commits
from lakehouse_engine.manifest.from_commits import FromCommits
from lakehouse_engine.manifest.manifest import Manifest
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.live_files import LiveFiles, WriteRecord
from lakehouse_engine.model.order import Order
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.write_stats import REWRITES
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.history import History, archived_moments, history_of
from lakehouse_engine.timeline.restores import pending_restore
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.file_system_view import FileSystemView, has_data
from lakehouse_engine.view.listings.flat_listing import lister_of
from lakehouse_engine.view.listings.kept import KeptAt, KeptPartitions
from lakehouse_engine.view.listings.listing import Lister, StorageLister
from lakehouse_engine.view.opening import look_at
from lakehouse_engine.view.planned import planned_slices
from lakehouse_engine.view.timeline_diff import Moment

Manifests = Callable[[FromCommits], Manifest]
"""Makes the manifest of each state of a table, and may use the one from commits."""


def from_commits(manifest: FromCommits) -> Manifest:
    """The manifest from commits alone."""
    return manifest


@dataclass(frozen=True, slots=True)
class _Kept:
    """Listings of consecutive states: those of the storage, and `beside` those of another lister (`TableState.listed_by`)."""

    listed: KeptPartitions = field(default_factory=KeptPartitions)
    beside: KeptPartitions = field(default_factory=KeptPartitions)


@dataclass(frozen=True, slots=True)
class TableState:
    """Configuration, timeline and file-system view of one moment; later commits do not show. Made by `load`.

    A restore counts as soon as its plan is on the timeline: writes that it takes back do not show.
    """

    storage: Storage
    config: TableConfig
    format: TableFormat
    timeline: Timeline
    view: FileSystemView
    manifest: Manifest = field(repr=False, compare=False)
    _told: FromCommits = field(repr=False, compare=False)
    _kept: _Kept = field(repr=False, compare=False)
    _manifests: Manifests = field(default=from_commits, repr=False, compare=False)
    _folders: frozenset[str] | None = field(default=None, repr=False, compare=False)
    """Directories beside the timeline when it was listed; None if the listing does not say."""
    may_be_moving: bool = field(default=False, repr=False, compare=False)
    """True if a change of the table's version may be running, or was interrupted."""
    lists_only: bool = field(default=False, repr=False, compare=False)
    """True if it was loaded because files may be other than was thought: the storage itself is to say which there are."""
    completed_again: tuple[StoredFile, ...] = field(default=(), repr=False, compare=False)
    """`ActiveTimeline.completed_again` of that listing."""
    coming_schema: str | None = field(default=None, repr=False, compare=False)
    """Avro schema of a write that is about to be completed, whose files may have its columns already (`with_columns_of`)."""

    @classmethod
    def load(cls, storage: Storage, manifest: Manifests = from_commits) -> TableState:
        """Read the configuration and list the timeline. Data files are listed, and commits opened, on demand. `manifest` makes the manifest
        of this state and later ones.

        Raises `TableNotFoundError`, `PropertiesError`, and `UnsupportedTableVersionError` for an unsupported table version.
        """
        return cls._load(storage, None, _Kept(), manifest)

    @property
    def active(self) -> ActiveTimeline:
        """Files of the active timeline, read on demand."""
        return self._told.commits.active

    @property
    def order(self) -> Order:
        """Order of the table's instants."""
        return self.timeline.order

    def refresh(self) -> TableState:
        """The table now, with known commits that are still on the timeline. Lists data files again, by the storage's own listings."""
        return replace(self._load(self.storage, self._told.commits, _Kept(), self._manifests), lists_only=True)

    def advance(self) -> TableState:
        """Like `refresh`, without listing partitions again that no instant touched since they were listed, for this state or one that
        shares its listings: a file lost since then shows when it is opened (docs/adr/0026).
        """
        return self._load(self.storage, self._told.commits, self._kept, self._manifests)

    def is_still(self, now: TableState) -> bool:
        """True if nothing happened between this state and a later one: no instant, and no change of properties."""
        return (self.timeline, self.config) == (now.timeline, now.config)

    def up_to(self, moment: str) -> TableState:
        """The table as if nothing had happened after `moment`: no later instant is opened."""
        timeline = self.timeline.up_to(moment)
        told = replace(self._told, timeline=timeline)
        manifest = self._manifests(told)
        lister, planned = StorageLister(self.storage), cache(partial(planned_slices, self.active, timeline))
        view = FileSystemView(lister, timeline, lambda: manifest.replaced_at, is_named=manifest.has, planned=planned)
        return replace(self, timeline=timeline, view=view, manifest=manifest, _told=told, _kept=_Kept())

    def listed_by(self, made: Callable[[Lister], Lister]) -> TableState:
        """The same moment, with data files as another lister shows them, made of the storage's own. Partitions that it listed for earlier
        states are kept, apart from those of this state's view. `lists_only` says that its caller should not.
        """
        return replace(self, view=self.view.listed_by(made, self._kept.beside))

    def with_columns_of(self, write: HoodieCommitMetadata) -> TableState:
        """The same files and timeline, with the columns that a write is about to give the table. Services give it none."""
        return self if write.operation_type in REWRITES else replace(self, coming_schema=write.schema_json or None)

    def without(self, instants: Collection[Instant]) -> TableState:
        """The same files under a timeline without some instants, such as those whose metadata cannot be read."""
        timeline = self.timeline.filter(lambda instant: instant not in instants)
        told = replace(self._told, timeline=timeline)
        return replace(self, timeline=timeline, manifest=self._manifests(told), _told=told)

    def may_have_folder(self, path: str) -> bool:
        """True if a folder of the timeline may hold anything; False if the timeline's listing shows that it does not exist. In an object
        store a folder exists while it holds an object, and checking is a request; elsewhere it may be a link, which no listing shows.
        """
        folder, _, below = path.partition("/")
        if self._folders is None or folder != self.format.timeline_folder or not below:
            return True
        return below.partition("/")[0] in self._folders

    def commit_metadata(self, instant: Instant) -> HoodieCommitMetadata:
        """Metadata of a completed write, decoded once.

        Raises `InstantNotFoundError` if it is not on the timeline (any more) or not a completed write, and `CorruptInstantError` if its
        file is empty or torn.
        """
        if not (instant.is_completed and instant.action.is_write):
            raise InstantNotFoundError(f"{instant} is not a completed write, and has no commit metadata", table=self.storage.root)
        return self._told.commits.of(instant)

    @property
    def timeline_files(self) -> Mapping[Instant, StoredFile]:
        """File of each state of each instant, as listed."""
        return self._told.commits.files

    def named_files(self, instant: Instant) -> frozenset[str] | None:
        """Names of a completed active write's data files; None if it does not list all of them. Raises as `commit_metadata`."""
        return self._told.commits.named(instant)

    def archived_files(self) -> ArchivedFiles:
        """Files that archived writes left, as far as known; damage is not raised but listed in `problems`."""
        return self._told.archived.files()

    @property
    def archived_timeline(self) -> History:
        """The archive; each method reads it again."""
        return self._told.archived.archive

    @property
    def has_archive(self) -> bool:
        """True if anything was ever archived."""
        return bool(self._told.archived.listed())

    def savepointed_files(self, moment: str) -> LiveFiles | None:
        """Files as of an archived savepointed write; None if unknown."""
        return self._told.savepointed(moment)

    def write_record(self, instant: Instant) -> WriteRecord:
        """What a completed active write left and removed, computed once; raises as `commit_metadata`."""
        return self._told.commits.record(instant)

    def active_writes(self, as_of: str | None = None) -> Iterator[WriteRecord]:
        """What completed active writes up to `as_of` (None: all) left, oldest first; raises as `commit_metadata`."""
        return self._told.writes(as_of)

    @property
    def proven_since(self) -> str:
        """Instant from which the active timeline has every write; "" if nothing was ever archived."""
        return self._told.proven_since

    def live_partitions(self) -> list[str]:
        """Partitions with files of completed writes that nothing replaced, sorted. Lists no data directory if the manifest knows; otherwise
        `view.partitions()`.
        """
        found = self.manifest.partitions()
        return self.view.partitions() if found is None else list(found)

    @classmethod
    def _load(cls, storage: Storage, known: Commits | None, store: _Kept, manifests: Manifests) -> TableState:
        look = look_at(storage)
        config, active, listing = look.config, look.active, look.listing
        table_format = active.format
        files, folders = active.files_of(listing), frozenset(entry.name for entry in listing if entry.is_directory)
        moments = archived_moments(storage, table_format, config)
        by_completion, by_writer = table_format.orders_by_completion, config.logs_by_writer
        timeline = Timeline.of_states(files, by_completion=by_completion, archived=moments, logs_by_writer=by_writer)
        restore = pending_restore(active, timeline)
        if restore is not None:
            timeline = timeline.as_restored(restore.target)
        commits = known.at(active, files) if known is not None else Commits(active, files)
        shown = folders if in_object_store(storage) else None
        has_archive = shown is None or history_of(storage, table_format, config).folder.partition("/")[0] in shown
        told = FromCommits(timeline, commits, Archived(storage, config, table_format, timeline, has_archive))
        manifest = manifests(told)
        lister = lister_of(storage, partitioned=bool(config.partition_fields))
        planned = cache(partial(planned_slices, active, timeline))
        kept = KeptAt(
            store.listed,
            Moment(config, timeline, active, files, commits.of),
            lambda: (timeline.start, timeline.pending_compactions, told.archived.files().marks, frozenset(planned().items())),
            manifest.has_log,
            lambda path: lister.is_partition(path) or has_data(lister, path),
        )
        view = FileSystemView(
            lister, timeline, lambda: manifest.replaced_at, manifest.written_partitions, manifest.has, kept, planned
        )
        again = active.completed_again(listing, files)
        moving = look.may_be_moving
        return cls(storage, config, table_format, timeline, view, manifest, told, store, manifests, shown, moving, completed_again=again)
