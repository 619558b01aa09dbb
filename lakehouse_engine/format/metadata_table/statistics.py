"""Records of `column_stats`, `partition_stats` and of expression indexes (Hudi `HoodieMetadataColumnStats`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.metadata_table.bounds import (
    ValueType,
    bounds_type,
    decimals_of,
    unwrap_bounds,
    value_type_struct,
    value_types,
    wrap_bounds,
)
from lakehouse_engine.format.metadata_table.payload import STATS, RecordType
from lakehouse_engine.format.metadata_table.schema import payload_schema

COUNTS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
"""Values including nulls, nulls, and bytes of the column's chunks with and without compression."""
_DECIMAL_BOUND = pa.decimal128(38, 0)


def stats_payloads(
    names: pa.Array, column: str, least: pa.Array, greatest: pa.Array, counts: pa.Table, *, by_value_type: bool, is_tight: bool = False
) -> pa.Table:
    """Statistics of one column: of files by their bare names, or with `is_tight` of partitions by their paths.

    `least` and `greatest` have the same `is_indexed` type; `counts` has the columns of `COUNTS`. `by_value_type` is for table version 9.
    """
    kind, count = payload_schema().field(STATS).type, len(names)
    typed = _value_types(least, greatest, counts) if by_value_type else pa.nulls(count, value_type_struct())
    members = {
        "fileName": names,
        "columnName": pa.repeat(column, count),
        "minValue": wrap_bounds(least, by_value_type=by_value_type),
        "maxValue": wrap_bounds(greatest, by_value_type=by_value_type),
        **{name: counts.column(name).combine_chunks() for name in COUNTS},
        "isDeleted": pa.repeat(False, count),
        "isTightBound": pa.repeat(is_tight, count),
        "valueType": typed,
    }
    struct = pa.StructArray.from_arrays([members[field.name] for field in kind], fields=list(kind))
    record_type = RecordType.PARTITION_STATS if is_tight else RecordType.COLUMN_STATS
    return pa.table({"type": pa.array(np.full(count, record_type, np.int32)), STATS: struct})


def _value_types(least: pa.Array, greatest: pa.Array, counts: pa.Table) -> pa.Array:
    """`valueType` of each record; without values, as of a log with deletions only, it is `NULL`."""
    no_values = pc.equal(counts.column("valueCount").combine_chunks(), 0)
    empty = pc.and_(no_values, pc.and_(least.is_null(), greatest.is_null()))
    return pc.if_else(empty, value_types(pa.null(), len(least)), value_types(least.type, len(least)))


def stats_bounds(stats: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Minimum and maximum of each statistics struct, in a column's type; null if not known."""
    declared = stats.field("valueType")
    return unwrap_bounds(stats.field("minValue"), declared, kind), unwrap_bounds(stats.field("maxValue"), declared, kind)


def fold_stats(codes: npt.NDArray[np.int64], count: int, stats: pa.Array) -> pa.Array:
    """Merge statistics, given in order of time, into one for each code; each code has some."""
    order = np.argsort(codes, kind="stable")
    if not pc.any(pc.or_(_flag(stats, "isTightBound"), _flag(stats, "isDeleted"))).as_py():
        return _fold_pairs(codes[order], stats.take(pa.array(order)))
    first = np.searchsorted(codes[order], np.arange(count))
    turn = np.empty(len(codes), np.int64)
    turn[order] = np.arange(len(codes)) - first[codes[order]]
    folded = stats.take(pa.array(order[first]))
    for number in range(1, int(turn.max(initial=0)) + 1):
        rows = np.flatnonzero(turn == number)
        merged = merge_stats(folded.take(pa.array(codes[rows])), stats.take(pa.array(rows)))
        places = np.arange(count)
        places[codes[rows]] = count + np.arange(len(rows))
        folded = pa.concat_arrays([folded, merged]).take(pa.array(places))
    return folded


def _fold_pairs(codes: npt.NDArray[np.int64], stats: pa.Array) -> pa.Array:
    """Fold statistics that are sorted by their code, of which none replaces another, so that neighbours may be merged first."""
    while len(codes) > 1 and bool((codes[1:] == codes[:-1]).any()):
        begins = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
        turn = np.arange(len(codes)) - np.repeat(begins, np.diff([*begins, len(codes)]))
        kept = np.flatnonzero(turn % 2 == 0)
        has_next = np.isin(kept + 1, np.flatnonzero(turn % 2 == 1))
        pairs = kept[has_next]
        merged = merge_stats(stats.take(pa.array(pairs)), stats.take(pa.array(pairs + 1)))
        places = kept.copy()
        places[has_next] = len(codes) + np.arange(len(pairs))
        stats, codes = pa.concat_arrays([stats, merged]).take(pa.array(places)), codes[kept]
    return stats


def merge_stats(older: pa.Array, newer: pa.Array) -> pa.Array:
    """Merge pairs of statistics of the same column of the same files (Hudi `HoodieTableMetadataUtil.mergeColumnStatsRecords`).

    A newer deletion or tight bound replaces the older one, as does anything after a deletion; else bounds widen and counts add up. Raises
    `FormatError` if two are of different files or columns, or have bounds of different types.
    """
    replaced = pc.or_(_flag(newer, "isTightBound"), pc.or_(_flag(newer, "isDeleted"), _flag(older, "isDeleted")))
    for name in ("fileName", "columnName"):
        if pc.any(pc.and_not(pc.not_equal(older.field(name), newer.field(name)), replaced)).as_py():
            raise FormatError(f"two column statistics of one key differ in their {name}")
    declared = pc.if_else(pc.equal(_ordinal(newer), int(ValueType.NULL)), older.field("valueType"), newer.field("valueType"))
    is_decimal = pc.or_(pc.equal(_ordinal(newer), int(ValueType.DECIMAL)), pc.equal(_ordinal(older), int(ValueType.DECIMAL)))
    joined = pc.invert(replaced)
    merged = {
        "valueType": declared,
        "minValue": _extreme(older.field("minValue"), newer.field("minValue"), is_decimal, joined, least=True),
        "maxValue": _extreme(older.field("maxValue"), newer.field("maxValue"), is_decimal, joined, least=False),
        **{name: _sum(older.field(name), newer.field(name)) for name in COUNTS},
    }
    children = [merged[field.name] if field.name in merged else newer.field(field.name) for field in newer.type]
    return pc.if_else(replaced, newer, pa.StructArray.from_arrays(children, fields=list(newer.type)))


def _ordinal(stats: pa.Array) -> pa.Array:
    return pc.fill_null(stats.field("valueType").field("typeOrdinal"), int(ValueType.V1))


def _flag(stats: pa.Array, name: str) -> pa.Array:
    return pc.fill_null(stats.field(name), False)


def _sum(older: pa.Array, newer: pa.Array) -> pa.Array:
    return pc.coalesce(pc.add(older, newer), older, newer)


def _extreme(older: pa.Array, newer: pa.Array, is_decimal: pa.Array, joined: pa.Array, *, least: bool) -> pa.Array:
    children, branches = [], np.zeros(len(newer), np.int64)
    for field in bounds_type():
        pair = [_member(values, field.name) for values in (older, newer)]
        if all(values.null_count == len(values) for values in pair):
            children.append(pair[1])
            continue
        there = pc.or_(pair[0].is_valid(), pair[1].is_valid())
        branches += np.asarray(there)
        if field.type.num_fields == 1 and field.name != "ArrayWrapper":
            of_decimals = is_decimal if field.name == "BytesWrapper" else None
            values = _outer(pair[0].field("value"), pair[1].field("value"), of_decimals, least=least)
            children.append(pa.StructArray.from_arrays([values], fields=list(field.type), mask=pc.invert(there)))
        else:
            children.append(pair[1])
    if bool((branches[np.asarray(joined)] > 1).any()):
        raise FormatError("two column statistics of one key have bounds of different types")
    return pa.StructArray.from_arrays(children, fields=list(bounds_type()), mask=pa.array(branches == 0))


def _member(values: pa.Array, name: str) -> pa.Array:
    """A member of a struct; null, with its contents, where the struct is null."""
    member = values.field(name)
    if member.null_count == len(member):
        return member
    return pc.if_else(pc.and_(values.is_valid(), member.is_valid()), member, pa.scalar(None, member.type))


def _outer(older: pa.Array, newer: pa.Array, is_decimal: pa.Array | None, *, least: bool) -> pa.Array:
    """The lesser (`least`) or greater value of two columns; if one is null, the other. NaN is above all numbers, as in Java."""
    if is_decimal is not None and pc.any(is_decimal).as_py():
        numbers = [decimals_of(values, _DECIMAL_BOUND) for values in (older, newer)]
        before = pc.if_else(is_decimal, pc.less(*numbers), pc.less(older, newer))
    else:
        before = pc.less(older, newer)
    if pat.is_floating(newer.type):
        before = pc.or_(before, pc.is_nan(newer))
    chosen = pc.if_else(before, older, newer) if least else pc.if_else(before, newer, older)
    return pc.coalesce(chosen, older, newer)
