"""Brings a base file of one table into another: one task per file, in threads of this process.

The file keeps its group and gets the instant of the clone's commit; otherwise Hudi's readers would not count it on a timeline that begins
with that commit. Its rows keep their commit times, and the name in their `_hoodie_file_name`, of which only the file's group matters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import OptionError, StorageError
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.sharing import copy_file, link_file
from lakehouse_engine.write.tasks.base_files import created_stat


class CloneFiles(StrEnum):
    """How base files are brought: by link if possible, else by copy (AUTO), or only by one of the two."""

    AUTO = "auto"
    LINK = "link"
    COPY = "copy"

    @classmethod
    def of(cls, text: str) -> CloneFiles:
        """Parse `text`. Raises `OptionError` for any other text."""
        if text not in list(cls):
            raise OptionError(f"files={text!r} is not one of {', '.join(cls)}")
        return cls(text)


@dataclass(frozen=True, slots=True)
class BringTask:
    """Brings `base`, as listed in `source`, into `target` as a file of the commit `instant_time`."""

    source: Storage
    target: Storage
    instant_time: str
    base: BaseFile
    how: CloneFiles


@dataclass(frozen=True, slots=True)
class Brought:
    """A base file of the clone. `is_linked`: it shares its bytes with the source."""

    stat: HoodieWriteStat
    is_linked: bool


def bring_file(task: BringTask) -> Brought:
    """Link or copy the file. It is durable on return, except for a link's entry in its directory.

    Raises `MissingFileError` and `CorruptFileError` for a file that is not as listed, and `StorageError` if links are required and
    impossible.
    """
    rows = FOOTERS.read(task.source, task.base).num_rows
    file = replace(task.base, instant_time=task.instant_time)
    is_linked = task.how is not CloneFiles.COPY and link_file(task.source, task.base.path, task.target, file.path)
    if not is_linked:
        if task.how is CloneFiles.LINK:
            raise StorageError(
                f"{task.base.path!r} of {task.source.root} cannot have a second name below {task.target.root}: they are on different file"
                " systems, or there are no hard links to this file; copy the files (DEEP CLONE, files='copy')",
                path=task.base.path,
                root=task.source.root,
            )
        copy_file(task.source, task.base.path, task.target, file.path, size=task.base.size)
    return Brought(created_stat(file, task.base.size, rows), is_linked)
