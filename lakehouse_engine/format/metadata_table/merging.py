"""Merges the records of a metadata table file group: its base file and the blocks of its logs (Hudi `HoodieMetadataPayload`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.metadata_table.files import fold_files
from lakehouse_engine.format.metadata_table.payload import BLOOM, FILES, SECONDARY, STATS, RecordType, decode_payloads
from lakehouse_engine.format.metadata_table.schema import payload_schema
from lakehouse_engine.format.metadata_table.statistics import fold_stats


class Merging(Enum):
    """How two payloads of one key are merged."""

    NEWEST = auto()
    """The newer one replaces the older one: record index, Bloom filters, secondary indexes."""
    FILES = auto()
    """Maps of files are united."""
    STATS = auto()
    """Statistics widen, or are replaced if the newer ones are tight."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The entries of a base file or of a log block, with the schema of their values; `schema` is "" for deleted keys."""

    cells: Cells
    schema: str

    @classmethod
    def deletion(cls, keys: pa.Array) -> Layer:
        octets = keys.cast(pa.binary())
        return cls(Cells(octets, pa.nulls(len(octets), pa.binary())), "")


@dataclass(frozen=True, slots=True)
class Winners:
    """Entries that win over those of other layers: `keys`, and the payload of each in the schema it was written in.

    Entries are grouped into runs of one schema; `schemas` has the schema and end of each run.
    """

    keys: pa.Array
    values: pa.Array
    schemas: tuple[tuple[str, int], ...]

    def payloads(self) -> pa.Table:
        """The payloads in the columns of `payload_schema()`, deleted ones included. Raises `FormatError`."""
        parts, start = [payload_schema().empty_table()], 0
        for schema, end in self.schemas:
            parts.append(decode_payloads(schema, self.values.slice(start, end - start)))
            start = end
        return pa.concat_tables(parts)


@dataclass(frozen=True, slots=True)
class Records:
    """Merged records without deleted ones, unordered: keys (`binary`) and decoded payloads."""

    keys: pa.Array
    payloads: pa.Table


def newest(layers: Sequence[Layer]) -> Winners:
    """The last entry of each key, unless a later layer deletes it. `layers` are in order of time; keys are unique in each."""
    changed = [layer for layer in layers[1:] if len(layer.cells)]
    base = [_without(layer, changed) for layer in layers[:1] if layer.schema]
    logged = _last_of(changed)
    kept = [layer for layer in (*base, *logged) if len(layer.cells)]
    ends = np.cumsum([len(layer.cells) for layer in kept]).tolist()
    cells = Cells.concat([layer.cells for layer in kept])
    return Winners(cells.keys, cells.values, tuple((layer.schema, end) for layer, end in zip(kept, ends, strict=True)))


def merged(layers: Sequence[Layer], merging: Merging) -> Records:
    """The merged records of a file group. Raises `FormatError` if payloads do not decode, or cannot be merged."""
    if merging is Merging.NEWEST:
        found = newest(layers)
        return _living(found.keys, found.payloads())
    standing = _since_deletions(layers)
    keys = pa.concat_arrays([layer.cells.keys for layer in standing]) if standing else pa.array([], pa.binary())
    runs = (Cells.concat([layer.cells for layer in run]) for _, run in groupby(standing, attrgetter("schema")))
    schemas = (schema for schema, _ in groupby(layer.schema for layer in standing))
    decoded = [decode_payloads(schema, cells.values) for schema, cells in zip(schemas, runs, strict=True)]
    payloads = pa.concat_tables([payload_schema().empty_table(), *decoded])
    coded = keys.dictionary_encode()
    codes, count = np.asarray(coded.indices).astype(np.int64), len(coded.dictionary)
    return _living(coded.dictionary, fold_payloads(codes, count, payloads, merging))


def fold_payloads(codes: npt.NDArray[np.int64], count: int, payloads: pa.Table, merging: Merging) -> pa.Table:
    """One payload for each of `count` codes, merged from the payloads with that code in order of time."""
    last = np.zeros(count, np.int64)
    last[codes] = np.arange(len(codes))
    newer = payloads.take(pa.array(last))
    if merging is Merging.NEWEST:
        return newer
    if merging is Merging.FILES:
        return newer.set_column(newer.column_names.index(FILES), payloads.schema.field(FILES), fold_files(codes, count, payloads))
    # Filters in an expression index are replaced; records of one key are of one kind.
    is_stats = np.asarray(payloads.column("type").combine_chunks()) != RecordType.BLOOM_FILTERS
    if not bool(is_stats.any()):
        return newer
    stats = fold_stats(codes, count, payloads.column(STATS).combine_chunks())
    return newer.set_column(newer.column_names.index(STATS), payloads.schema.field(STATS), stats)


def _without(base: Layer, changed: Sequence[Layer]) -> Layer:
    if not changed:
        return base
    keys = pa.concat_arrays([layer.cells.keys for layer in changed])
    return Layer(base.cells.filter(pc.invert(pc.is_in(base.cells.keys, keys))), base.schema)


def _last_of(layers: Sequence[Layer]) -> list[Layer]:
    """The entries of each layer whose keys no later layer puts or deletes."""
    kept: list[Layer] = []
    later: list[pa.Array] = []
    for layer in reversed(layers):
        if layer.schema:
            after = pa.concat_arrays(later) if later else pa.array([], pa.binary())
            kept.append(Layer(layer.cells.filter(pc.invert(pc.is_in(layer.cells.keys, after))), layer.schema))
        later.append(layer.cells.keys)
    return kept[::-1]


def _since_deletions(layers: Sequence[Layer]) -> list[Layer]:
    """The entries of each layer whose keys no later layer deletes."""
    kept: list[Layer] = []
    deleted = pa.array([], pa.binary())
    for layer in reversed(layers):
        if layer.schema:
            kept.append(Layer(layer.cells.filter(pc.invert(pc.is_in(layer.cells.keys, deleted))), layer.schema))
        else:
            deleted = pa.concat_arrays([deleted, layer.cells.keys])
    return [layer for layer in reversed(kept) if len(layer.cells)]


def tombstones(payloads: pa.Table) -> pa.Array:
    """True for payloads that say that their subject was deleted."""
    gone = pa.array(np.zeros(payloads.num_rows, np.bool_))
    for name in (BLOOM, STATS, SECONDARY):
        if name in payloads.column_names:
            info = payloads.column(name).combine_chunks()
            gone = pc.or_(gone, pc.and_(info.is_valid(), pc.fill_null(info.field("isDeleted"), False)))
    return gone


def _living(keys: pa.Array, payloads: pa.Table) -> Records:
    gone = tombstones(payloads)
    if not pc.any(gone).as_py():
        return Records(keys, payloads)
    return Records(keys.filter(pc.invert(gone)), payloads.filter(pc.invert(gone)))
