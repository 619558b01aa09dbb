"""Looks up keys in the file groups that an index names for them.

`by_group` sorts what the index says by file group, and `tagged_in` opens the base files of those groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakehouse_engine.engine import TaskRunner, looking_runner, weighed_out
from lakehouse_engine.index.base import Rows, StoredKeys, TaggedFile
from lakehouse_engine.index.lookup import TagTask, tag_files
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.read.guarantees import learn_keys
from lakehouse_engine.storage.base import Storage


def by_group(named: Sequence[tuple[pa.Table, Rows]]) -> Iterator[tuple[FileGroupId, Rows]]:
    """Rows (ascending) of each file group."""
    if not named:
        return
    located, rows = pa.concat_tables([table for table, _ in named]), np.concatenate([one for _, one in named])
    paths, ids = (located.column(name).combine_chunks().dictionary_encode() for name in ("partition_path", "file_id"))
    codes = np.asarray(paths.indices).astype(np.int64) * max(1, len(ids.dictionary)) + np.asarray(ids.indices)
    order = np.lexsort((rows, codes))
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    for part in np.split(order, cuts):
        if len(part):
            first = int(part[0])
            yield FileGroupId(paths[first].as_py(), ids[first].as_py()), rows[part]


@dataclass(frozen=True, slots=True)
class _Looking:
    """Look up keys in base files, each file for the rows that the index says to be there."""

    tasks: tuple[TagTask, ...]


def _look(work: _Looking) -> list[TaggedFile]:
    return [found for task in work.tasks for found in tag_files(task)]


def tagged_in(
    storage: Storage, places: Sequence[tuple[FileSlice, Rows]], keys: pa.Array, stored: StoredKeys, runner: TaskRunner
) -> list[TaggedFile]:
    """Hits in base files, by path."""
    tasks = [
        TagTask(storage, (piece.base_file,), stored, keys.take(pa.array(rows)), rows, False)
        for piece, rows in places
        if piece.base_file is not None
    ]
    looking = looking_runner(runner, storage)
    works = [_Looking(part) for part in weighed_out(tasks, [task.bases[0].size for task in tasks], looking)]
    looked = [found for files in looking.run(_look, works, name="tag") for found in files]
    looked.sort(key=lambda found: found.base.path)
    learn_keys(storage, ((found.base, found.bounds) for found in looked))
    return [found for found in looked if len(found.positions)]
