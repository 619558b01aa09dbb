"""Bring a base file of one table into another: what runs per file, in threads of this process.

The file keeps its group and gets the instant of the clone's commit, without which no reader of Hudi's would take it for part of a timeline
that begins with that commit. Its rows keep their commit times, and the name in their `_hoodie_file_name`, of which the file's group counts.
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
    """How base files are brought: by links where that can be and copies else, or by one of the two only."""

    AUTO = "auto"
    LINK = "link"
    COPY = "copy"

    @classmethod
    def of(cls, text: str) -> CloneFiles:
        """Raises `OptionError` for any other text."""
        if text not in list(cls):
            raise OptionError(f"files={text!r} is not one of {', '.join(cls)}")
        return cls(text)


@dataclass(frozen=True, slots=True)
class BringTask:
    """`base`, as it was listed in `source`, is to be a file of the commit `instant_time` in `target`."""

    source: Storage
    target: Storage
    instant_time: str
    base: BaseFile
    how: CloneFiles


@dataclass(frozen=True, slots=True)
class Brought:
    stat: HoodieWriteStat
    is_linked: bool


def bring_file(task: BringTask) -> Brought:
    """Durable on return but for the entry in its directory, if it is a link.

    Raises `MissingFileError` and `CorruptFileError` for a file that is not as it was listed, and `StorageError` where links are asked for
    and cannot be made.
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
