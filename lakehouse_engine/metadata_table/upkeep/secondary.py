"""Changes of a secondary index: values and keys of the rows of each slice that a commit touches, before and after it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.metadata_table.keys import secondary_routes
from lakehouse_engine.metadata_table.delta import Change
from lakehouse_engine.metadata_table.records.pairs import pair_keys, pair_payloads
from lakehouse_engine.metadata_table.upkeep.rows import slice_after, slice_rows
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.model.write_stats import REWRITES, HoodieWriteStat
from lakehouse_engine.view.table_state import TableState


def secondary_change(
    data: TableState, instant_time: str, metadata: HoodieCommitMetadata, column: str, schema_text: str, *, routes_by_value: bool
) -> Change:
    """Change of the index on `column` for a commit whose files exist; `data` is the table before it. `routes_by_value`: rows of one value
    are in one file group (version V2).

    Raises as `SliceReader.read`.
    """
    if metadata.operation_type in REWRITES:
        return Change()
    before, after = [_NO_KEYS], [_NO_KEYS]
    for old, new in _slices(data, metadata):
        if old is not None:
            before.append(pair_keys(slice_rows(data, old, [RECORD_KEY, column]), column))
        if new is not None:
            after.append(pair_keys(slice_rows(data, new, [RECORD_KEY, column], also=instant_time), column))
    gone, there = (pc.unique(pa.concat_arrays(parts)) for parts in (before, after))
    put, deleted = there.filter(pc.invert(pc.is_in(there, gone))), gone.filter(pc.invert(pc.is_in(gone, there)))
    cells = Cells(put, pair_payloads(schema_text, len(put)))
    return Change(cells, deleted, route=secondary_routes if routes_by_value else None)


_NO_KEYS = pa.array([], pa.binary())


def _slices(data: TableState, metadata: HoodieCommitMetadata) -> Iterator[tuple[FileSlice | None, FileSlice | None]]:
    """Slices that the commit touches, before and after it."""
    for path, stats in metadata.partition_to_write_stats.items():
        known = {piece.file_id: piece for piece in data.view.latest_slices(path)}
        by_group: dict[str, list[HoodieWriteStat]] = {}
        for stat in stats:
            by_group.setdefault(stat.file_id or "", []).append(stat)
        for file_id, written in by_group.items():
            old = known.get(file_id)
            yield old, slice_after(path, file_id, written, old)
    for path, ids in (metadata.partition_to_replace_file_ids or {}).items():
        yield from ((piece, None) for piece in data.view.latest_slices(path) if piece.file_id in ids)
