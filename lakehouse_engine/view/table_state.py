"""A table as it is at one moment: everything that planning asks, in one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from lakehouse_engine.errors import (
    CorruptInstantError,
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
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.history import History, archived_moments, history_of
from lakehouse_engine.timeline.restores import pending_restore
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.file_system_view import FileSystemView, has_data
from lakehouse_engine.view.listings.flat_listing import lister_of
from lakehouse_engine.view.listings.kept import KeptAt, KeptPartitions
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.news import Moment
from lakehouse_engine.view.opening import look_at
from lakehouse_engine.view.planned import planned_slices

Manifests = Callable[[FromCommits], Manifest]
"""Makes the manifest of each state of a table, which may ask the one that follows from commits."""


def from_commits(manifest: FromCommits) -> Manifest:
    """The manifest that follows from commits alone."""
    return manifest


@dataclass(frozen=True, slots=True)
class TableState:
    """Configuration, timeline and file-system view of one moment; later commits do not show in it. Made by `load`.

    A restore counts from the moment on at which its plan is on the timeline: writes that it takes back do not show.
    """

    storage: Storage
    config: TableConfig
    layout: TableFormat
    timeline: Timeline
    view: FileSystemView
    manifest: Manifest = field(repr=False, compare=False)
    _told: FromCommits = field(repr=False, compare=False)
    _kept: KeptPartitions = field(repr=False, compare=False)
    _manifests: Manifests = field(default=from_commits, repr=False, compare=False)
    _folders: frozenset[str] | None = field(default=None, repr=False, compare=False)
    """Names of the directories that were beside the timeline when it was listed; None where that says nothing."""
    may_be_moving: bool = field(default=False, repr=False, compare=False)
    """Whether a change of the table's version may be at work, or have been cut off."""

    @classmethod
    def load(cls, storage: Storage, manifest: Manifests = from_commits) -> TableState:
        """Read the configuration and list the timeline; data files are listed, and commits opened, when they are asked for. `manifest`
        makes what says which files must be there, for this state and those that follow from it.

        Raises `TableNotFoundError`, `PropertiesError`, and `UnsupportedTableVersionError` for a table version that cannot be opened.
        """
        return cls._load(storage, None, KeptPartitions(), manifest)

    @property
    def active(self) -> ActiveTimeline:
        """The active timeline's files, as they are when each is asked for."""
        return self._told.commits.active

    @property
    def order(self) -> Order:
        """Which instant comes after which."""
        return self.timeline.order

    def refresh(self) -> TableState:
        """The table as it is now, with what is known of commits that are still on the timeline. Data files are listed anew."""
        return self._load(self.storage, self._told.commits, KeptPartitions(), self._manifests)

    def advance(self) -> TableState:
        """As `refresh`, but partitions that no instant touched since they were listed, for this state or for one that it shares listings
        with, are not listed again: a file that was lost since then shows when it is opened (docs/adr/0026).
        """
        return self._load(self.storage, self._told.commits, self._kept, self._manifests)

    def is_still(self, now: TableState) -> bool:
        """Whether nothing has happened to the table between this state and a later one: no instant, and no change of its properties."""
        return (self.timeline, self.config) == (now.timeline, now.config)

    def up_to(self, moment: str) -> TableState:
        """The table as if nothing had happened after `moment`: no later instant is opened."""
        timeline = self.timeline.up_to(moment)
        told = replace(self._told, timeline=timeline)
        manifest = self._manifests(told)
        lister, planned = StorageLister(self.storage), cache(partial(planned_slices, self.active, timeline))
        view = FileSystemView(lister, timeline, lambda: manifest.replaced_at, is_named=manifest.has, planned=planned)
        return replace(self, timeline=timeline, view=view, manifest=manifest, _told=told, _kept=KeptPartitions())

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
        return self._told.commits.of(instant)

    @property
    def timeline_files(self) -> Mapping[Instant, StoredFile]:
        """The file of each state of each instant, as they were listed."""
        return self._told.commits.files

    def named_files(self, instant: Instant) -> frozenset[str] | None:
        """Names of the data files of a completed write of the active timeline, None where it does not tell all of them; raises as
        `commit_metadata`.
        """
        return self._told.commits.named(instant)

    def archived_files(self) -> ArchivedFiles:
        """Which files archived writes left, as far as that is known; damage of what tells of them is no error, but in its `problems`."""
        return self._told.archived.files()

    @property
    def archived_timeline(self) -> History:
        """The archive, read anew by each method."""
        return self._told.archived.archive

    @property
    def has_archive(self) -> bool:
        """Whether anything was ever archived."""
        return bool(self._told.archived.listed())

    def savepointed_files(self, moment: str) -> LiveFiles | None:
        """Which files there were as of a savepointed write that is archived; None where that is not known."""
        return self._told.savepointed(moment)

    def write_record(self, instant: Instant) -> WriteRecord:
        """What a completed write of the active timeline left and took away, worked out once; raises as `commit_metadata`."""
        return self._told.commits.record(instant)

    def active_writes(self, as_of: str | None = None) -> Iterator[WriteRecord]:
        """What the completed writes of the active timeline up to `as_of` (None: all) left, oldest first; raises as `commit_metadata`."""
        return self._told.writes(as_of)

    @property
    def proven_since(self) -> str:
        """The instant time from which on the active timeline has every write; "" when nothing was ever archived."""
        return self._told.proven_since

    def live_partitions(self) -> list[str]:
        """Partitions in which completed writes left files that nothing replaced, sorted. No directory of data is listed where the manifest
        tells; `view.partitions()` where it does not.
        """
        found = self.manifest.partitions()
        return self.view.partitions() if found is None else list(found)

    @classmethod
    def _load(cls, storage: Storage, known: Commits | None, store: KeptPartitions, manifests: Manifests) -> TableState:
        look = look_at(storage)
        config, active, listing = look.config, look.active, look.listing
        layout = active.layout
        files, folders = active.files_of(listing), frozenset(entry.name for entry in listing if entry.is_directory)
        moments = archived_moments(storage, layout, config)
        by_completion, by_writer = layout.orders_by_completion, config.logs_by_writer
        timeline = Timeline.of_states(files, by_completion=by_completion, archived=moments, logs_by_writer=by_writer)
        restore = pending_restore(active, timeline)
        if restore is not None:
            timeline = timeline.as_restored(restore.target)
        commits = known.at(active, files) if known is not None else Commits(active, files)
        shown = folders if in_object_store(storage) else None
        has_archive = shown is None or history_of(storage, layout, config).folder.partition("/")[0] in shown
        told = FromCommits(timeline, commits, Archived(storage, config, layout, timeline, has_archive))
        manifest = manifests(told)
        lister = lister_of(storage, partitioned=bool(config.partition_fields))
        planned = cache(partial(planned_slices, active, timeline))
        kept = KeptAt(
            store,
            Moment(config, timeline, active, files, commits.of),
            lambda: (timeline.start, timeline.pending_compactions, told.archived.files().marks, frozenset(planned().items())),
            manifest.has_log,
            lambda path: lister.is_partition(path) or has_data(lister, path),
        )
        view = FileSystemView(
            lister, timeline, lambda: manifest.replaced_at, manifest.written_partitions, manifest.has, kept, planned
        )
        return cls(storage, config, layout, timeline, view, manifest, told, store, manifests, shown, look.may_be_moving)


def check_completed_files(state: TableState) -> None:
    """Raise `CorruptInstantError` for a completed write whose file is empty: writing on would bury what it promised.

    Torn files show when they are read; an empty one would pass for a commit without files. Told by the listing that the state is of.
    """
    for instant, entry in state.timeline_files.items():
        if not entry.size and instant.is_completed and instant.action.is_write:
            raise CorruptInstantError(
                "a completed write has an empty file: it was torn, and what it wrote is unknown; put the file back from a backup, or"
                " restore the table to before it",
                instant=instant,
                path=entry.path,
                bytes=0,
                table=state.config.name,
            )
