"""Merges small files of the archive, like `hoodie.archive.merge.enable` of Hudi's archiver up to 0.15.

The merged file is written, durably, and then its sources are deleted. There is no plan, unlike in Hudi, whose merged file may be torn: here
it exists as a whole or not at all, and an instant in several files counts once. Sources that a dead process left are deleted by the next
archiving, if the merged file is the newest, or go with the next merge. While a plan of Hudi's exists nothing is merged: its torn file may
look whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from lakehouse_engine.errors import FormatError, StorageError
from lakehouse_engine.format.log.blocks import LogBlock
from lakehouse_engine.format.v6.archived import MERGE_PLAN, archive_blocks, archive_file_name, merge_archives, merged_from
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.archived import ArchivedTimeline

logger = logging.getLogger(__name__)

_TRIFLE = 64
"""Files smaller than this fraction of the largest allowed are merged with any others."""
_MOST = 500
"""Most files merged at once: each is read and deleted under the table's lock."""


def merge_archive_files(archive: ArchivedTimeline, options: ArchiveOptions, counted: int = 0) -> str | None:
    """Merge the newest files of the archive if there are enough small ones; returns the path of the merged one. The table lock is held.

    `counted` as in `ArchivedTimeline.next_number`. On failure archiving continues: it is logged, and the next archiving tries again.
    """
    try:
        return _merge(archive, options, counted) if options.merges else None
    except StorageError as error:
        logger.warning("files of the archive of %s were not merged: %s", archive.storage.root, error)
        return None


def _merge(archive: ArchivedTimeline, options: ArchiveOptions, counted: int) -> str | None:
    listed = archive.listed()
    chosen = mergeable(archive.files(listed), options)
    if not chosen or any(entry.name == MERGE_PLAN for entry in listed):
        return None
    sources = _whole(archive, chosen)
    if len(sources) < options.merged_files:
        return None
    path = f"{archive.path}/{archive_file_name(archive.next_number(counted))}"
    _replace(archive, path, sources)
    return path


def _replace(archive: ArchivedTimeline, path: str, sources: Mapping[str, Sequence[LogBlock]]) -> None:
    # Files that a dead merge left beside its merged file are in that file already.
    twice = {name for blocks in sources.values() for name in merged_from(blocks)}
    archive.storage.create(path, merge_archives({name: blocks for name, blocks in sources.items() if name not in twice}))
    remove_merged(archive, sources)


def remove_merged(archive: ArchivedTimeline, names: Iterable[str]) -> None:
    """Remove archive files that are in a merged one, if they exist."""
    removed = [name for name in names if archive.storage.delete(f"{archive.path}/{name}")]
    if removed:
        archive.storage.sync(archive.path)


def mergeable(files: Sequence[StoredFile], options: ArchiveOptions) -> Sequence[StoredFile]:
    """The newest archive files that are worth merging, from `files`, oldest first; none if they are too few.

    A larger file is merged again only with at least its own size, so that each record is rewritten only a few times in all.
    """
    taken, size = 0, 0
    for file in reversed(files[-_MOST:]):
        is_large = file.size > max(size, options.merged_bytes // _TRIFLE) and taken
        if is_large or file.size > options.merged_bytes or size > options.merged_bytes:
            break
        taken, size = taken + 1, size + file.size
    return files[len(files) - taken :] if taken >= options.merged_files else ()


def _whole(archive: ArchivedTimeline, files: Sequence[StoredFile]) -> dict[str, list[LogBlock]]:
    """Blocks of `files` by name, newest first, up to a damaged one; this and older ones stay, for `verify` to report."""
    found: dict[str, list[LogBlock]] = {}
    for file in reversed(files):
        data = archive.storage.read(file.path)
        try:
            found[file.name] = archive_blocks(data)
        except FormatError as error:
            logger.warning("%s of %s is not merged with others: %s", file.path, archive.storage.root, error)
            break
    return found
