"""Few files in the archive: small ones become one, as Hudi's archiver does with `hoodie.archive.merge.enable`, under the same plan.

 1. a plan, `mergeArchivePlan`, that names what is merged into what, durable
 2. the merged file, durable
 3. what was merged is deleted
 4. the plan is deleted

After 2, instants are in two files, and count once. A process that dies is finished by the next archiving, or by Hudi's: forward where the
merged file is whole, else as if nothing had been begun. It never runs but before an archiving that writes a file and a checkpoint of its
own: so the newest file is a small one, and the checkpoint counts the merged one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.timeline.archived import MERGE_PLAN, archive_file_name, merge_archives
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.archived import ArchivedTimeline, ArchiveMerge

logger = logging.getLogger(__name__)

_TRIFLE = 64
"""Files of less than that part of the largest one are merged with any others."""


def merge_archive_files(archive: ArchivedTimeline, options: ArchiveOptions) -> str | None:
    """Merge the newest files of the archive where there are enough small ones; the path of the merged one. The table lock is held."""
    if any(entry.name == MERGE_PLAN for entry in archive.listed()) and not _finish(archive):
        return None
    sources = _whole(archive, mergeable(archive.files(), options)) if options.merges else {}
    if len(sources) < options.merged_files:
        return None
    merge = ArchiveMerge(archive_file_name(archive.next_number()), tuple(sources))
    archive.plan_merge(merge)
    path = f"{archive.path}/{merge.target}"
    archive.storage.create(path, merge_archives(sources.values()))
    _settle(archive, merge.sources)
    return path


def mergeable(files: Sequence[StoredFile], options: ArchiveOptions) -> Sequence[StoredFile]:
    """Of archive files, oldest first, the newest that are worth merging; none where they are too few.

    One that is not a trifle is merged again only with as much as it has itself, so that each record is written a few times in all.
    """
    taken, size = 0, 0
    for file in reversed(files):
        if file.size > options.merged_bytes or file.size > max(size, options.merged_bytes // _TRIFLE):
            break
        taken, size = taken + 1, size + file.size
    return files[len(files) - taken :] if taken >= options.merged_files else ()


def _whole(archive: ArchivedTimeline, files: Sequence[StoredFile]) -> dict[str, bytes]:
    """Contents of `files` by name, oldest first, without a damaged one and those before it: it stays as it is, for `verify` to tell."""
    found: dict[str, bytes] = {}
    for file in reversed(files):
        data = archive.storage.read(file.path)
        if (damage := _damage(data)) is not None:
            logger.warning("%s of %s is not merged with others: %s", file.path, archive.storage.root, damage)
            break
        found[file.name] = data
    return dict(reversed(found.items()))


def _damage(data: bytes) -> FormatError | None:
    try:
        merge_archives([data])
    except FormatError as error:
        return error
    return None


def _finish(archive: ArchivedTimeline) -> bool:
    """Finish the merge that a dead process began; whether others may begin."""
    merge = archive.merge_plan()
    if merge is None:
        archive.forget_merge()  # it was not whole: nothing has been done by it
        return True
    there = {file.name: file for file in archive.files()}
    target = there.get(merge.target)
    damage = None if target is None else _damage(archive.storage.read(target.path))
    if target is not None and damage is None:
        _settle(archive, merge.sources)
    elif all(name in there for name in merge.sources):
        _settle(archive, [merge.target])
    else:
        wrong = "not there" if damage is None else f"damaged: {damage.message}"
        missing = ", ".join(sorted(set(merge.sources) - set(there)))
        logger.warning("files of the archive of %s are not merged: %s, of %s, is %s", archive.storage.root, merge.target, missing, wrong)
        return False
    return True


def _settle(archive: ArchivedTimeline, names: Sequence[str]) -> None:
    for name in names:
        archive.storage.delete(f"{archive.path}/{name}")
    archive.storage.sync(archive.path)
    archive.forget_merge()
