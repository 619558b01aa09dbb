"""Assigns new records to files: small ones first, then new file groups. Pure.

Like Hudi's `UpsertPartitioner`: a base file below `hoodie.parquet.small.file.limit` is filled up to `hoodie.parquet.max.file.size`, by the
average size of a record; the rest goes to new groups of about that many records. The average comes from the footers of the largest files,
because a file of three records says little (most of its size is the Bloom filter).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.write.source import Rows

Numbers = TypeVar("Numbers", Rows, range)
"""New records, by number or rank."""

_TRUSTED_ROWS = 1000
"""Files with fewer rows say nothing about record size, unless there are no others."""


@dataclass(frozen=True, slots=True)
class SizedFile:
    """A base file and its row count; `data_bytes` is its size without parts that do not grow with rows (the Bloom filter)."""

    base: BaseFile
    num_rows: int
    data_bytes: int


@dataclass(frozen=True, slots=True)
class Assignment(Generic[Numbers]):
    """`to_files[i]`: rows for an existing base file; `to_new`: rows for each new file group."""

    to_files: tuple[tuple[BaseFile, Numbers], ...]
    to_new: tuple[Numbers, ...]


def average_record_size(files: Sequence[SizedFile], fallback: Callable[[], float]) -> float:
    """Bytes per record on disk; `fallback` if no file has records."""
    trusted = [file for file in files if file.num_rows >= _TRUSTED_ROWS] or [file for file in files if file.num_rows]
    rows = sum(file.num_rows for file in trusted)
    return max(1.0, sum(file.data_bytes for file in trusted) / rows) if rows else max(1.0, fallback())


def assign_inserts(rows: Numbers, files: Sequence[SizedFile], record_size: float, options: WriteOptions) -> Assignment[Numbers]:
    """Distribute a partition's new rows over its small files (smallest first) and new groups."""
    to_files: list[tuple[BaseFile, Numbers]] = []
    start = 0
    for file in sorted(files, key=lambda candidate: candidate.base.size):
        if start == len(rows) or file.base.size >= options.small_file_limit:
            break
        room = int((options.max_file_size - file.base.size) / record_size)
        if room > 0:
            to_files.append((file.base, rows[start : start + room]))
            start += len(to_files[-1][1])
    return Assignment(tuple(to_files), tuple(split_evenly(rows[start:], max(1, int(options.max_file_size / record_size)))))


def split_evenly(rows: Numbers, most: int) -> Iterator[Numbers]:
    """Pieces of at most `most` rows, as equal as they can be."""
    if not len(rows):
        return
    pieces = -(-len(rows) // most)
    for number in range(pieces):
        yield rows[len(rows) * number // pieces : len(rows) * (number + 1) // pieces]
