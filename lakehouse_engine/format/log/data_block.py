"""Rows of a data block as Arrow (hudi-format 5.3)."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse_engine.errors import FormatError, UnsupportedTableError
from lakehouse_engine.format.avro.avro_arrow import avro_to_arrow
from lakehouse_engine.format.avro.avro_decode import decode_records
from lakehouse_engine.format.avro.avro_encode import encode_fixed, encode_records, join
from lakehouse_engine.format.avro.avro_source import AvroSource, Positions
from lakehouse_engine.format.log.blocks import CONTENT_VERSION, BlockType, LogBlock

_INTEGER = struct.Struct(">i")


def decode_data_block(block: LogBlock, wanted: Collection[str] | None = None, *, partial: bool = False) -> pa.Table:
    """The block's rows with meta columns: an Avro block in the columns of its schema, a Parquet block as stored.

    For a Parquet block, columns that are not in `wanted` (names in lower case) may be left out. `partial` allows blocks whose rows have
    only some of the table's columns: the caller merges them.

    Raises `UnsupportedTableError` for HFile and CDC blocks and for partial updates without `partial`, `FormatError` for a block that does
    not decode, `UnsupportedTypeError` for a column of a type that the engine does not have.
    """
    if block.is_partial and not partial:
        raise UnsupportedTableError("log blocks with partial updates (table version 8 and later) cannot be read")
    if block.type is BlockType.PARQUET_DATA:
        return _parquet(block, wanted)
    if block.type is BlockType.AVRO_DATA:
        return _avro(block)
    raise UnsupportedTableError(
        f"log blocks of type {block.type.name} cannot be read; compact the table with Hudi, whose writers then need"
        " hoodie.logfile.data.block.format=avro or parquet"
    )


def _parquet(block: LogBlock, wanted: Collection[str] | None) -> pa.Table:
    try:
        file = pq.ParquetFile(
            pa.BufferReader(block.content), metadata=block.parquet_footer, coerce_int96_timestamp_unit="us", page_checksum_verification=True
        )
        table = file.read(None if wanted is None else [name for name in file.schema_arrow.names if name.lower() in wanted])
        # Other writers' pages may lack checksums: text that is not UTF-8 would fail only later, in unrelated code.
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"the content of a Parquet block does not parse: {error}") from error
    return table


def _avro(block: LogBlock) -> pa.Table:
    if not block.schema:
        raise FormatError("an Avro block has no schema in its header")
    starts, ends = record_bounds(block.content)
    if not len(starts):
        return avro_to_arrow(block.schema).empty_table()
    return decode_records(block.schema, AvroSource.of(block.content, ends), starts)


def record_bounds(content: memoryview) -> tuple[Positions, Positions]:
    """Where each record of an Avro block begins and ends. Raises `FormatError` unless they fill the block."""
    size = len(content)
    if size < 8:
        raise FormatError("an Avro block ends within its head")
    version, count = struct.unpack_from(">ii", content, 0)
    if version != CONTENT_VERSION:
        raise FormatError(f"the content of an Avro block has version {version}; only {CONTENT_VERSION} is read")
    if not 0 <= count <= (size - 8) // _INTEGER.size:
        raise FormatError(f"an Avro block of {size} bytes cannot hold {count} records")
    bounds, position, unpack = array("q"), 8, _INTEGER.unpack_from
    for _ in range(count):
        if position + 4 > size:
            raise FormatError("an Avro block ends before its last record")
        length = unpack(content, position)[0]
        bounds.append(position + 4)
        position += 4 + length
        if length < 0 or position > size:
            raise FormatError("an Avro block ends within a record")
    if position != size:
        raise FormatError(f"{size - position} bytes are left behind the last record of an Avro block")
    starts = np.array(bounds, np.int64)
    return starts, np.append(starts[1:] - 4, np.int64(size))[: len(starts)]


def render_parquet_block(
    table: pa.Table, *, compression: str = "zstd", dictionary: Sequence[str] | bool = True, footer: Mapping[str, str] | None = None
) -> memoryview:
    """The content of a Parquet data block; `dictionary` names the leaves to try a dictionary for, `footer` has further key-value metadata.

    Decimals are bytes and lists have an `element`, as in base files: Hudi does not read other forms. There are no statistics: no reader
    uses those of logs.
    """
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression=compression,
        use_dictionary=dictionary,
        write_statistics=False,
        store_schema=False,
        store_decimal_as_integer=False,
        use_compliant_nested_type=True,
        write_page_checksum=True,
    ) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        if footer:
            writer.add_key_value_metadata(dict(footer))
    return memoryview(sink.getvalue())


def render_avro_block(schema_text: str, table: pa.Table) -> bytes:
    """The content of an Avro data block; `table` has the columns of `avro_to_arrow(schema_text)`."""
    records = encode_records(schema_text, table) if table.num_rows else pa.array([], pa.binary())
    sizes = np.asarray(pc.binary_length(records)).astype(">i4")
    framed = join([encode_fixed(np.frombuffer(sizes.tobytes(), np.uint8).reshape(-1, 4)), records])
    body = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(framed)], pa.int32()), framed), b"")[0].as_py()
    return struct.pack(">ii", CONTENT_VERSION, len(records)) + bytes(body)
