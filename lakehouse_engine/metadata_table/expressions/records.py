"""Records of expression indexes, derived from data files (Hudi `SparkMetadataWriterUtils.getExprIndexRecords`).

A file without a record is never ruled out, nor is one without rows needed. A partition without a record is ruled out by Hudi 1.2 once
another one has one, so that all have them, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.engine import REQUESTS_AT_ONCE, LocalRunner
from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.column_bounds import ColumnBounds, is_rebased
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.bloom import build_bloom_filter, filter_entries
from lakehouse_engine.format.metadata_table.bloom_filters import bloom_filter_payloads
from lakehouse_engine.format.metadata_table.keys import (
    bloom_filter_keys,
    column_prefix,
    column_stats_keys,
    expression_partition_prefix,
    expression_partition_stats_keys,
)
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.format.metadata_table.payload import STATS
from lakehouse_engine.format.metadata_table.statistics import COUNTS, stats_payloads
from lakehouse_engine.metadata_table.expressions.bounded import Bounded, anything
from lakehouse_engine.metadata_table.expressions.index import ExpressionIndex, FilterShape
from lakehouse_engine.metadata_table.records.columns import IndexedColumns
from lakehouse_engine.metadata_table.records.joining import completed, joined
from lakehouse_engine.metadata_table.records.statistics import base_ranges, files_of, log_ranges, log_rows, partition_payloads
from lakehouse_engine.metadata_table.records.value_ranges import joined as joined_ranges
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.view.table_state import TableState

File = BaseFile | LogFile


def file_records(data: TableState, index: ExpressionIndex, files: Sequence[File]) -> Records:
    """A record for each file with rows, and in an index of Bloom filters with values that are all certain.

    Raises `StoredFileNotFoundError`, and as reading the files.
    """
    kept = [file for file in files if isinstance(file, BaseFile) or not file.is_cdc]
    if index.shape is not None:
        return _filters(data, index, index.shape, kept)
    return _statistics(data, index, kept)


def partition_records(data: TableState, index: ExpressionIndex, slices: Iterable[FileSlice], known: Records) -> Records:
    """Statistics of whole partitions over `slices`, which are all latest ones of theirs. `known` has records of files; those that are
    missing are derived.
    """
    files = [file for piece in slices for file in files_of(piece)]
    missing = np.flatnonzero(np.asarray(pc.invert(pc.is_in(_stats_keys(index, files), known.keys))))
    known = joined([known, file_records(data, index, [files[place] for place in missing.tolist()])])
    places = pc.index_in(_stats_keys(index, files), known.keys)
    there = places.is_valid()
    paths = pa.array([file.partition_path for file in files], pa.string()).filter(there).dictionary_encode()
    if not len(paths):
        return joined(())
    stats = known.payloads.column(STATS).combine_chunks().take(places.filter(there))
    payloads = partition_payloads(np.asarray(paths.indices).astype(np.int64), stats, paths.dictionary)
    return Records(_partition_keys(index, paths.dictionary), payloads)


def changed_records(
    table: MetadataTable, index: ExpressionIndex, files: Sequence[File], after: dict[str, list[FileSlice]]
) -> tuple[Records, pa.Array]:
    """Records to put and keys to delete for a commit with these new files. `after` has the newest slices of each partition that it
    touches.
    """
    written = file_records(table.data, index, files)
    if index.shape is not None or not table.data.config.partition_fields:
        return written, pa.array([], pa.binary())
    if not len(table.with_prefixes(index.partition, [expression_partition_prefix(index.source.name)]).keys):
        latest = table.data.view.latest_slices
        after = {**{path: list(latest(path)) for path in table.data.view.partitions()}, **after}
    stored = table.with_prefixes(index.partition, [column_prefix(index.source.name, path) for path in after])
    whole = partition_records(table.data, index, [piece for pieces in after.values() for piece in pieces], joined([stored, written]))
    keys = _partition_keys(index, pa.array(sorted(after), pa.string()))
    return joined([written, whole]), keys.filter(pc.invert(pc.is_in(keys, whole.keys)))


def forgotten_keys(index: ExpressionIndex, paths: pa.Array, names: pa.Array) -> pa.Array:
    """Keys of the records of files, by partition path and bare name."""
    if index.shape is not None:
        return bloom_filter_keys(paths, names)
    return column_stats_keys(pa.repeat(index.source.name, len(paths)), paths, names)


def _stats_keys(index: ExpressionIndex, files: Sequence[File]) -> pa.Array:
    return forgotten_keys(index, *_named(files))


def _named(files: Sequence[File]) -> tuple[pa.Array, pa.Array]:
    paths, names = (pa.array([getattr(file, name) for file in files], pa.string()) for name in ("partition_path", "name"))
    return paths, names


def _partition_keys(index: ExpressionIndex, paths: pa.Array) -> pa.Array:
    return expression_partition_stats_keys(pa.repeat(index.source.name, len(paths)), paths)


def _statistics(data: TableState, index: ExpressionIndex, files: Sequence[File]) -> Records:
    described = LocalRunner(REQUESTS_AT_ONCE).run(partial(_range, data, index), files, name="expressions")
    found = [(file, one) for file, one in zip(files, described, strict=True) if one.values]
    _, names = _named([file for file, _ in found])
    least, greatest = (pa.array([getattr(one, end) for _, one in found], index.expression.kind) for end in ("least", "greatest"))
    # As in Hudi values are those that are not null, and twice the file's size stands for that without compression.
    each = [(one.values - (one.nulls or 0), one.nulls, file.size, 2 * file.size) for file, one in found]
    counts = pa.table([pa.array([one[place] for one in each], pa.int64()) for place in range(len(COUNTS))], names=COUNTS)
    payloads = stats_payloads(names, index.source.name, least, greatest, counts, by_value_type=index.by_value_type)
    return Records(_stats_keys(index, [file for file, _ in found]), completed(payloads)) if found else joined(())


def _range(data: TableState, index: ExpressionIndex, file: File) -> ColumnBounds:
    """Range of the expression in a file."""
    found = ColumnBounds(None, None, 0, 0)
    if not index.expression.grows:
        for bounded in bounded_values(data, index, file):
            found = joined_ranges(found, _range_of(bounded, len(bounded.least), bounded.least.null_count))
        return found
    source = _source_range(data, index, file)
    ends = pa.chunked_array([pa.array([source.least, source.greatest], index.source.type).drop_null()])
    return _range_of(index.expression.compute(ends), source.values, source.nulls)


def _range_of(bounded: Bounded, values: int, nulls: int | None) -> ColumnBounds:
    least, greatest = pc.min(bounded.least), pc.max(bounded.greatest)
    return ColumnBounds(least, greatest, values, nulls) if least.is_valid else ColumnBounds(None, None, values, nulls)


def _source_range(data: TableState, index: ExpressionIndex, file: File) -> ColumnBounds:
    """Range of the source column in a file, from its footer if that has it."""
    schema = table_schema(data)
    wanted = IndexedColumns((index.source,), True, tuple(schema.names))
    if isinstance(file, BaseFile):
        found = base_ranges(data.storage, schema, wanted, file)
    else:
        found = log_ranges(data.storage, wanted, file)
    assert found is not None, "records of version V2 hold every value"
    return found[0]


def bounded_values(data: TableState, index: ExpressionIndex, file: File) -> Iterator[Bounded]:
    """The expression for all rows of a file, part by part. Where Spark may read other days than are stored, it may be anything.

    Raises as reading the file.
    """
    schema, kind = pa.schema([index.source]), index.expression.kind
    if isinstance(file, LogFile):
        yield from (index.expression.compute(rows.cast(schema).column(0)) for rows in log_rows(data.storage, file, schema))
        return
    is_rebased_here = _is_of_time(index.source.type) and is_rebased(FOOTERS.read(data.storage, file), first_right=b"3.1")
    for rows in iter_base_file(data.storage, file, table_schema(data), columns=schema.names):
        values = rows.cast(schema).column(0)
        yield anything(values, kind) if is_rebased_here else index.expression.compute(values)


def _is_of_time(kind: pa.DataType) -> bool:
    return bool(pat.is_date(kind) or pat.is_timestamp(kind))


def _filters(data: TableState, index: ExpressionIndex, shape: FilterShape, files: Sequence[File]) -> Records:
    found = LocalRunner(REQUESTS_AT_ONCE).run(partial(_filter, data, index, shape), files, name="expressions")
    made = [(file, text) for file, text in zip(files, found, strict=True) if text is not None]
    paths, names = _named([file for file, _ in made])
    instants = pa.array([file.instant_time for file, _ in made], pa.string())
    texts = pa.array([text for _, text in made], pa.string())
    return Records(bloom_filter_keys(paths, names), completed(bloom_filter_payloads(pa.repeat(shape.kind, len(made)), instants, texts)))


def _filter(data: TableState, index: ExpressionIndex, shape: FilterShape, file: File) -> str | None:
    """The filter of a file with the texts of all values but null; None if one of them is not certain, or there is no row."""
    parts = list(bounded_values(data, index, file))
    if not parts or not all(part.is_exact for part in parts):
        return None
    values = pc.unique(pa.chunked_array([chunk for part in parts for chunk in part.least.chunks], index.expression.kind))
    texts = values.drop_null().cast(pa.string())
    entries = shape.entries or filter_entries(len(texts))
    most = max(shape.max_entries, entries)
    return build_bloom_filter(texts, kind=shape.kind, entries=entries, fpp=shape.fpp, max_entries=most).to_base64()
