"""Partition metafiles that are lost: without one Hudi and other readers answer as if the partition had no rows."""

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
    """Paths of metafiles that are gone of partitions that writes left files in."""
    return [join_path(partition, PARTITION_METAFILE) for partition in state.view.without_metafile]


def put_back_metafiles(state: TableState) -> list[str]:
    """Make the metafiles that are gone, and name them. The table lock is held; a crash between two leaves the rest to the next time.

    The instant in it is that of the newest write, for the one that made the partition is not known; no reader looks at it.
    """
    last = state.timeline.completed().writes().last()
    paths = lost_metafiles(state) if last is not None else []
    for path in paths:
        assert last is not None
        logger.warning("%s of %s was gone; it is put back", path, state.config.name)
        with suppress(StoredFileExistsError):
            state.storage.create(path, render_partition_metafile(last.requested_time, path.count("/")))
    return paths
