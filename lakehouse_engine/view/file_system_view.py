"""Files that make the table, now or at an instant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lakehouse_engine.compat import cached_property
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name
from lakehouse_engine.model.files import BaseFile, FileGroup, FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.storage.base import Listing
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.listings.kept import KeptAt, KeptPartition, KeptPartitions
from lakehouse_engine.view.listings.listing import Lister
from lakehouse_engine.view.planned import Planned
from lakehouse_engine.view.slicing import build_file_groups, is_replaced, slice_as_of


class FileSystemView:
    """Slices of a table at one state of its timeline. Partitions are listed on first use, once per view.

    `timeline` is the whole active one, as loaded. `replaced` returns replaced groups with the time of the completed commit that replaced
    each. `named` returns the partitions that commits name: those with data files count even without a metafile. `is_named` says whether a
    committed instant's commit named a base file. `kept` has listings of earlier states that still hold. `planned` returns the slices that
    pending compactions will make (`planned_slices`). Methods with `partition` answer for all partitions if it is None; slices are sorted by
    partition path and file id.
    """

    def __init__(
        self,
        lister: Lister,
        timeline: Timeline,
        replaced: Callable[[], Mapping[FileGroupId, str]],
        named: Callable[[], Iterable[str]] = tuple,
        is_named: Callable[[BaseFile], bool] = lambda base: True,
        kept: KeptAt | None = None,
        planned: Callable[[], Planned] = dict,
    ) -> None:
        self._planned = planned
        self._kept = kept
        self._from_kept: set[str] = set()
        self._knew_paths = False
        self._is_named = is_named
        self._strays: dict[str, list[BaseFile]] = {}
        self._lister = lister
        self._named = named
        self._timeline = timeline
        self._load_replaced = replaced
        self._groups: dict[str, list[FileGroup]] = {}
        self._by_id: dict[str, dict[str, FileGroup]] = {}
        self._latest: dict[str, list[FileSlice]] = {}
        self._beside: FileSystemView | None = None

    def listed_by(self, made: Callable[[Lister], Lister], store: KeptPartitions) -> FileSystemView:
        """This moment as another lister shows it, which is made of this view's: one for each view. What it lists is kept apart, in `store`.
        """
        if self._beside is None:
            kept = None if self._kept is None else self._kept.apart(store)
            lister, timeline = made(self._lister), self._timeline
            self._beside = FileSystemView(lister, timeline, self._load_replaced, self._named, self._is_named, kept, self._planned)
        return self._beside

    def look_ahead(self, partitions: Iterable[str]) -> None:
        """Say which partitions will be asked about, for a lister that finds the files of several at once."""
        unknown = [path for path in partitions if path not in self._groups]
        kept = self._kept
        self._lister.look_ahead(unknown if kept is None else [path for path in unknown if kept.get(path) is None])

    def partitions(self) -> list[str]:
        """Partition paths, sorted; "" for a table without partitions. Includes partitions whose groups are all replaced."""
        return list(self._partitions)

    def file_groups(self, partition: str) -> list[FileGroup]:
        """Every group with its visible slices, newest first; includes replaced groups, and slices of pending compactions unmerged."""
        groups = self._groups.get(partition)
        if groups is None:
            groups = self._known_groups(partition)
            if groups is None:
                groups = self._made_groups(partition, self._lister.files(partition))
            self._groups[partition] = groups
        return groups

    def _known_groups(self, partition: str) -> list[FileGroup] | None:
        """Groups from a listing of an earlier state of the table, if it still holds."""
        kept = None if self._kept is None else self._kept.get(partition)
        if self._kept is None or kept is None:
            return None
        self._from_kept.add(partition)
        if kept.rests_on != self._kept.basis:
            return self._made_groups(partition, kept.files)
        self._strays[partition] = []
        return kept.groups

    def _made_groups(self, partition: str, files: Listing) -> list[FileGroup]:
        strays: list[BaseFile] = []

        def is_named(base: BaseFile) -> bool:
            named = self._is_named(base)
            if not named:
                strays.append(base)
            return named

        groups = build_file_groups(partition, files, self._timeline, is_named, self._planned)
        self._strays[partition] = strays
        if self._kept is not None:
            self._kept.keep(partition, files, groups)
        return groups

    @property
    def rests_on_kept(self) -> bool:
        """True if an answer came from an earlier state's listing, or was not the storage's own (`listed_by`)."""
        beside = self._beside is not None and self._beside.rests_on_kept
        return beside or self._knew_paths or bool(self._from_kept) or self._lister.is_hearsay

    @property
    def unchecked(self) -> frozenset[str] | None:
        """Partitions whose files still have to be checked for completeness; None for all. `was_checked` records the check."""
        return None if self._kept is None else self._kept.unchecked()

    def was_checked(self) -> None:
        if self._kept is not None:
            self._kept.keep_checked()

    def list_anew(self) -> bool:
        """Forget listings, for this view and later ones; returns whether an answer of this view came from an earlier listing."""
        rested = self.rests_on_kept
        if self._kept is not None:
            self._kept.forget()
        self._lister.forget()
        for known in (self._groups, self._by_id, self._latest, self._strays, self._from_kept):
            known.clear()
        for name in ("_partitions", "without_metafile", "_listed"):
            self.__dict__.pop(name, None)
        self._knew_paths = False
        return rested

    def look_again(self, partitions: Iterable[str]) -> None:
        """List these partitions for this view, whatever was kept; its own listings stay."""
        for partition in partitions:
            if partition not in self._groups or partition in self._from_kept:
                self._from_kept.discard(partition)
                for known in (self._by_id, self._latest):
                    known.pop(partition, None)
                self._lister.forget(partition)
                self._groups[partition] = self._made_groups(partition, self._lister.files(partition))

    def strays(self, partition: str) -> list[BaseFile]:
        """Base files of committed instants that no commit named: not part of the table."""
        self.file_groups(partition)
        return list(self._strays[partition])

    @property
    def seen(self) -> list[str]:
        """Partitions listed so far, sorted."""
        return sorted(self._groups)

    def file_group(self, group: FileGroupId) -> FileGroup | None:
        """One of `file_groups`; None if it does not exist. Equally fast for every group of a partition."""
        known = self._by_id.get(group.partition_path)
        if known is None:
            groups = self.file_groups(group.partition_path)
            known = self._by_id[group.partition_path] = {found.group.file_id: found for found in groups}
        return known.get(group.file_id)

    def latest_slices(self, partition: str | None = None) -> list[FileSlice]:
        """Current slices of the table."""
        return self._slices(None, partition)

    def slices_as_of(self, moment: str, partition: str | None = None) -> list[FileSlice]:
        """Slices at a moment, as far as they still exist (a clean may have removed some)."""
        return self._slices(moment, partition)

    def replaced_as_of(self, moment: str | None = None) -> set[FileGroupId]:
        """Groups replaced at a moment (None: now) by completed replace commits of the active timeline."""
        return {group for group in self._replaced if is_replaced(group, self._replaced, self._timeline.order, moment)}

    @property
    def replaced_at(self) -> Mapping[FileGroupId, str]:
        """Every group that a completed replace commit of the active timeline names, with the time of the first."""
        return self._replaced

    def _slices(self, moment: str | None, partition: str | None) -> list[FileSlice]:
        paths = self._partitions if partition is None else [partition]
        if partition is None:
            self.look_ahead(paths)
        return [piece for path in paths for piece in (self._latest_of(path) if moment is None else self._sliced(moment, path))]

    def _latest_of(self, path: str) -> list[FileSlice]:
        found = self._latest.get(path)
        if found is None:
            kept = self._kept_of(path)
            found = None if kept is None else kept.latest
            if found is None:
                found = self._sliced(None, path)
                if kept is not None:
                    kept.latest = found
            self._latest[path] = found
        return found

    def _kept_of(self, path: str) -> KeptPartition | None:
        """Kept data of a partition, if the groups of this view came from it."""
        groups = self.file_groups(path)
        kept = None if self._kept is None else self._kept.get(path)
        return kept if kept is not None and kept.groups is groups else None

    def _sliced(self, moment: str | None, path: str) -> list[FileSlice]:
        order, pending = self._timeline.order, self._timeline.pending_compactions
        live = (group for group in self.file_groups(path) if not is_replaced(group.group, self._replaced, order, moment))
        pieces = (slice_as_of(group, pending, order, moment) for group in live)
        return [piece for piece in pieces if piece is not None]

    @cached_property
    def _partitions(self) -> tuple[str, ...]:
        known = None if self._kept is None else self._kept.paths()
        self._knew_paths = known is not None
        found = known if known is not None else {*self._listed, *self.without_metafile}
        if self._kept is not None and known is None:
            self._kept.keep_paths(found)
        return tuple(sorted(found))

    @cached_property
    def without_metafile(self) -> tuple[str, ...]:
        """Partitions that commits name and that have data files, but no metafile: Hudi and others read no rows of them."""
        unlisted = sorted(set(self._named()) - set(self._listed))
        return tuple(path for path in unlisted if has_data(self._lister, path))

    @cached_property
    def _listed(self) -> tuple[str, ...]:
        return tuple(self._lister.partitions())

    @cached_property
    def _replaced(self) -> Mapping[FileGroupId, str]:
        return self._load_replaced()


def has_data(lister: Lister, partition: str) -> bool:
    """True if a directory has base or log files, of any writer."""
    return any(is_base_file_name(file.name) or is_log_file_name(file.name) for file in lister.files(partition))
