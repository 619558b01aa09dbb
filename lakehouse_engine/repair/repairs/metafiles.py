"""Lost or damaged partition metafiles. Their content is never read, but Hudi sees no partition without one."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.commit.leftovers.metafiles import lost_metafiles
from lakehouse_engine.format.partition_metafile import render_partition_metafile
from lakehouse_engine.repair.disorder import Disorder, DisorderKind
from lakehouse_engine.repair.repairs.aside import set_aside
from lakehouse_engine.repair.repairs.remedy import Mending, mending
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.verify.metadata import check_metafiles
from lakehouse_engine.view.table_state import TableState


def damaged_metafiles(state: TableState) -> Iterator[Mending]:
    """Metafiles that do not parse. The new one has the newest write's instant, as if put back by it."""
    last = state.timeline.completed().writes().last()
    for finding in check_metafiles(state):
        if state.storage.head(finding.path) is None:
            continue
        if last is None:
            message = f"{finding.message}: no write of the timeline left files in its directory; delete that"
            yield mending(finding.path, message, None)
            continue
        content = render_partition_metafile(last.requested_time, finding.path.count("/"))
        message = f"{finding.message}: it is made anew"
        yield mending(finding.path, message, lambda path=finding.path, content=content: _replace(state.storage, path, content))  # type: ignore[misc]


def _replace(storage: Storage, path: str, content: bytes) -> None:
    set_aside(storage, path)
    storage.overwrite(path, content)


def lost(state: TableState) -> Iterator[Disorder]:
    """Missing metafiles of partitions with files of writes."""
    for path in lost_metafiles(state):
        message = "is gone, and without it Hudi and other readers see no rows of the partition: it is put back"
        yield Disorder(DisorderKind.LOST_METAFILE, path, message)
