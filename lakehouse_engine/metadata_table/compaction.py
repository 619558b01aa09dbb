"""Compaction of a metadata table: what a file group's base file and log blocks become, piece by piece in the order of keys.

A piece is a range of keys with a bounded number of stored bytes in all layers, so that a group of any size is merged in little memory.
Tombstones are left out, because nothing is below the new base file; removals of files that a map does not have stay in it, as in Hudi
(`HoodieMetadataPayload.combineFileSystemMetadata`).

Data blocks of the base file that no log has a key for are copied as they are stored, after a check by decompression (ADR 0076). That is
right for each kind of merging: a record that is in the base file only stays what it is. Neither Hudi nor this engine writes tombstones into
base files, and one that is there would mean what its absence means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import compress, groupby, pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.format.hfile.cells import Cells, place
from lakehouse_engine.format.hfile.index import holding
from lakehouse_engine.format.hfile.reader import DataBlock, HFileReader
from lakehouse_engine.format.hfile.writer import HFileWriter, sorted_cells
from lakehouse_engine.format.metadata_table.merging import Layer, Merging, Winners, merged, newest, tombstones
from lakehouse_engine.format.metadata_table.payload import decode_payloads, encode_payloads
from lakehouse_engine.format.metadata_table.schema import record_schema, stored_schema
from lakehouse_engine.metadata_table.groups import LayerSource
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import is_later, latest
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.view.table_state import TableState

_PIECE = 4 * 1024 * 1024
"""Stored bytes that are merged at once; decompressed they are up to ten times as many."""


def last_delta_commit(metadata: TableState) -> str:
    """The newest completed delta commit by requested time; "" if there is none."""
    return latest(one.requested_time for one in metadata.timeline.completed() if one.action is Action.DELTA_COMMIT)


def blocked_by(data: TableState, metadata: TableState) -> Instant | None:
    """The pending instant of the data table that no compaction of its metadata table may pass; None if there is none.

    A delta commit that is pending in the data table does not count yet, so the new base file would lack it. In version 6 (Hudi
    `HoodieBackedTableMetadataWriter.validateCompactionScheduling`) an earlier pending instant would also be logged behind the compaction.
    An index build stands in the way by its own delta commit while it runs.
    """
    last = "" if metadata.format.orders_by_completion else last_delta_commit(metadata)
    for instant in data.timeline.pending().filter(lambda one: one.action is not Action.INDEXING):
        known = metadata.timeline.find(instant.requested_time)
        if (known is not None and known.is_completed) or not is_later(instant.requested_time, last):
            return instant
    return None


def planned_slice(metadata: TableState, group: FileGroupId) -> str | None:
    """Instant of the pending compaction that a file group is in the plan of; None without one. A damaged plan is run by no program."""
    for instant in metadata.timeline.pending().filter(lambda one: one.action is Action.COMPACTION):
        with suppress(MetadataError):
            plan = metadata.active.plan(HoodieCompactionPlan, instant.at(State.REQUESTED))
            if any((one.partition_path, one.file_id) == (group.partition_path, group.file_id) for one in plan.operations or ()):
                return instant.requested_time
    return None


def schema_text(metadata: TableState) -> str:
    """The Avro schema of records as the newest commit of the metadata table has it, or as a new one gets it."""
    newest = metadata.timeline.completed().writes().last()
    stored = None if newest is None else metadata.commit_metadata(newest).schema_json
    return stored or record_schema(metadata.config.version)


def record_text(sources: Sequence[LayerSource], otherwise: str) -> str:
    """The Avro schema for a group's records: the newest of the texts in its layers that have the most members; `otherwise` without any."""
    chosen, most = otherwise, 0
    for source in sources:
        members = _members(stored_schema(source.schema)) if source.schema else 0
        if members and members >= most:
            chosen, most = source.schema, members
    return chosen


def compact_into(writer: HFileWriter, sources: Sequence[LayerSource], merging: Merging, schema: str) -> None:
    """Write the merged entries of a file group in ascending order of keys, with values in `schema`.

    Raises `FormatError` or `CorruptLogError` if a file is damaged or its records cannot be merged.
    """
    base, *logs = sources
    decoded = 0
    with base.checked():
        copies = base.reader is not None and base.schema == schema and writer.can_copy(base.reader)
    for begin, end in _pieces([source.reader for source in sources if source.reader is not None]):
        newer = [_within(source, begin, end) for source in logs]
        with base.checked():
            blocks = [] if base.reader is None else base.reader.blocks(begin, end)
        touched = _touched(blocks, newer, begin, end, writer.least_size) if copies else [True] * len(blocks)
        older = base.layer(partial(_entries, list(compress(blocks, touched)), begin, end))
        decoded += len(older.cells)
        found = _merged([older, *newer], merging, schema)
        for is_touched, run in groupby(zip(touched, blocks, strict=True), itemgetter(0)):
            part = [block for _, block in run]
            if not is_touched:
                with base.checked():
                    writer.copy(part)
                continue
            stop = place(found.keys, part[-1].end)
            writer.append(found.slice(0, stop))
            found = found.slice(stop, len(found))
        writer.append(found)
    if base.reader is not None:
        with base.checked():
            writer.count_copied(base.reader, decoded)


def _touched(blocks: Sequence[DataBlock], newer: Sequence[Layer], begin: bytes, end: bytes | None, least_size: int) -> list[bool]:
    """For each block between `begin` and `end` True unless it is copied: a newer layer puts or deletes a key in its range, or it is cut by
    the ends. A touched block of fewer bytes than `least_size` is merged with its neighbour, so that blocks which shrink do not stay small.
    """
    if not blocks:
        return []
    keys = pa.concat_arrays([pa.array([], pa.binary()), *(layer.cells.keys for layer in newer)])
    touched = np.array([not len(block.stored.content) for block in blocks])
    touched[0] |= blocks[0].key < begin
    touched[-1] |= end is not None and (blocks[-1].end is None or blocks[-1].end > end)
    # A key before the first block of the file comes into that block.
    touched[np.maximum(holding(pa.array([block.key for block in blocks], pa.binary()), keys), 0)] = True
    small = np.array([len(block.stored.content) < least_size for block in blocks])
    last = len(blocks) - 1
    for number in np.flatnonzero(touched & small).tolist():
        touched[number + 1 if number < last else max(0, number - 1)] = True
    return list(map(bool, touched))


def _entries(blocks: Sequence[DataBlock], begin: bytes, end: bytes | None, reader: HFileReader) -> Cells:
    cells = reader.entries(blocks)
    return cells.slice(place(cells.keys, begin), place(cells.keys, end))


def _members(schema: pa.Schema) -> int:
    return len(schema.names) + sum(_nested(field.type) for field in schema)


def _nested(kind: pa.DataType) -> int:
    fields = [kind.field(place) for place in range(kind.num_fields)]
    return len(fields) + sum(_nested(field.type) for field in fields)


def _pieces(readers: Sequence[HFileReader]) -> Iterator[tuple[bytes, bytes | None]]:
    """Ranges of keys that together have all entries, each with about `_PIECE` stored bytes."""
    starts = [reader.starts() for reader in readers]
    keys = pa.concat_arrays([pa.array([], pa.binary()), *(found for found, _ in starts)])
    if not len(keys):
        return
    order = pc.sort_indices(keys)
    before = np.concatenate([[0], np.cumsum(np.concatenate([sizes for _, sizes in starts])[np.asarray(order)])])[:-1]
    first = np.flatnonzero(np.concatenate([[True], np.diff(before // _PIECE) > 0]))
    cuts = pc.unique(keys.take(order).take(pa.array(first))).to_pylist()
    # No key is before the empty one; blocks may begin before the first key that their index has.
    yield from pairwise([b"", *cuts[1:], None])


def _within(source: LayerSource, begin: bytes, end: bytes | None) -> Layer:
    """The entries of a layer, or the keys that it deletes, from `begin` up to, not including, `end`."""
    if source.reader is not None:
        return source.layer(lambda reader: reader.range(begin, end, keep=False))
    keys = source.deleted.cast(pa.binary())
    wanted = pc.greater_equal(keys, begin) if end is None else pc.and_(pc.greater_equal(keys, begin), pc.less(keys, end))
    return Layer.deletion(keys.filter(wanted))


def _merged(layers: Sequence[Layer], merging: Merging, schema: str) -> Cells:
    if not any(len(layer.cells) for layer in layers):
        return Cells.empty()
    if merging is Merging.NEWEST:
        return _newest(newest(layers), schema)
    records = merged(layers, merging)
    return sorted_cells(records.keys, encode_payloads(schema, records.payloads))


def _newest(found: Winners, schema: str) -> Cells:
    """Values stay as they are stored, unless they are in another schema. Each distinct one is decoded once, to leave out tombstones."""
    parts, start = [], 0
    for text, end in found.schemas:
        parts.append(_rendered(Cells(found.keys, found.values).slice(start, end), text, schema))
        start = end
    cells = Cells.concat(parts)
    return sorted_cells(cells.keys, cells.values)


def _rendered(cells: Cells, text: str, schema: str) -> Cells:
    coded = cells.values.dictionary_encode()
    payloads = decode_payloads(text, coded.dictionary)
    values = cells.values if text == schema else encode_payloads(schema, payloads).take(coded.indices)
    gone = tombstones(payloads)
    if not pc.any(gone).as_py():
        return Cells(cells.keys, values)
    return Cells(cells.keys, values).filter(pc.invert(gone.take(coded.indices)))
