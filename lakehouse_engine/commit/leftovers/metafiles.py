"""Lost partition metafiles: without one, Hudi and other readers see no rows in the partition."""

from __future__ import annotations

import logging
from contextlib import suppress

from lakehouse_engine.errors import StoredFileExistsError
from lakehouse_engine.format.file_names import PARTITION_METAFILE
from lakehouse_engine.format.partition_metafile import render_partition_metafile
from lakehouse_engine.model.files import join_path
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def lost_metafiles(state: TableState) -> list[str]:
    """Paths of missing metafiles, in partitions with files of writes."""
    return [join_path(partition, PARTITION_METAFILE) for partition in state.view.without_metafile]


def put_back_metafiles(state: TableState) -> list[str]:
    """Make missing metafiles and return their paths. The table lock is held; after a crash the next call makes the rest.

    Their instant is the newest write's, because the partition's first write is unknown; no reader uses it.
    """
    last = state.timeline.completed().writes().last()
    paths = lost_metafiles(state) if last is not None else []
    for path in paths:
        assert last is not None
        logger.warning("%s of %s was gone; it is put back", path, state.config.name)
        with suppress(StoredFileExistsError):
            state.storage.create(path, render_partition_metafile(last.requested_time, path.count("/")))
    return paths
