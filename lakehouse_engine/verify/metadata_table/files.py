"""Compares listed files with the directories and the commits, and Bloom filters with footers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.metadata_table.answers import LISTED, bloom_filters, listed_files, partition_paths, rows_by_partition
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, FILES
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.files import BaseFile, join_path
from lakehouse_engine.verify.metadata_table.report import MetadataFinding, MetadataFindingKind
from lakehouse_engine.view.table_state import TableState

_FILTER, _FILTER_KIND = b"org.apache.hudi.bloomfilter", b"hoodie_bloom_filter_type_code"
_SIMPLE = b"SIMPLE"


def check_files(table: MetadataTable) -> tuple[int, list[MetadataFinding]]:
    """Number of listed files, and what is wrong with them."""
    by_partition = rows_by_partition(listed_files(table))
    count = sum(files.num_rows for files in by_partition.values())
    found: list[MetadataFinding] = []
    for path in sorted({*by_partition, *table.data.view.partitions()}):
        files = by_partition.get(path, LISTED.empty_table())
        listed = dict(zip(files.column("name").to_pylist(), files.column("size").to_pylist(), strict=True))
        found += _compared(path, listed, stored_sizes(table.data, path), committed_files(table.data, path))
    named = set(partition_paths(table))
    for path in sorted(set(table.data.view.partitions()) - named):
        if table.data.view.latest_slices(path):
            found.append(finding(MetadataFindingKind.UNLISTED_FILE, path, "the partition has files, and is not listed"))
    return count, found


def _compared(path: str, listed: Mapping[str, int], stored: Mapping[str, int], committed: Iterable[str]) -> Iterator[MetadataFinding]:
    for name in sorted(set(committed) - listed.keys()):
        yield finding(MetadataFindingKind.UNLISTED_FILE, join_path(path, name), "a completed commit wrote it, and it is not listed")
    for name, size in sorted(listed.items()):
        if name not in stored:
            yield finding(MetadataFindingKind.LISTED_FILE_IS_GONE, join_path(path, name), "it is listed, and is not there")
        elif stored[name] != size:
            message = f"it has {stored[name]} bytes, and {size} are listed"
            yield finding(MetadataFindingKind.WRONG_SIZE, join_path(path, name), message)


def finding(kind: MetadataFindingKind, path: str, message: str, partition: str = FILES) -> MetadataFinding:
    """A finding about a data file."""
    return MetadataFinding(kind, partition, path, message)


def stored_sizes(state: TableState, path: str) -> dict[str, int]:
    """Names and sizes of the files in a partition's directory."""
    return {entry.name: entry.size for entry in state.storage.list(path) if not entry.is_directory}


def committed_files(state: TableState, path: str) -> set[str]:
    """Names of a partition's files that completed writes named and that exist."""
    logged: set[str] = set()
    for instant in state.timeline.completed().writes():
        logged |= state.named_files(instant) or frozenset()
    found: set[str] = set()
    for group in state.view.file_groups(path):
        for piece in group.slices:
            found |= {log.name for log in piece.log_files if log.name in logged}
            found |= {piece.base_file.name} if piece.base_file is not None else set()
    return found


def check_filters(table: MetadataTable) -> tuple[int, list[MetadataFinding]]:
    """Number of compared Bloom filters, and findings for those that differ from their files'."""
    files = latest_base_files(table)
    found: list[MetadataFinding] = []
    filters = bloom_filters(table, files)
    for file, known in zip(parsed(files), filters, strict=True):
        texts = FOOTERS.read(table.data.storage, file).metadata or {}
        if known is None or _FILTER not in texts:
            continue
        kind = texts.get(_FILTER_KIND, _SIMPLE).decode("ascii")
        if known != BloomFilter.from_base64(texts[_FILTER].decode("ascii"), kind):
            message = f"its footer has another filter (kind {kind}, and {known.kind} in the metadata table)"
            found.append(finding(MetadataFindingKind.WRONG_BLOOM_FILTER, file.path, message, BLOOM_FILTERS))
    return sum(known is not None for known in filters), found


def latest_base_files(table: MetadataTable) -> pa.Table:
    """Listed base files of the newest slices, whose statistics and filters readers use, in the columns of `LISTED`."""
    latest = {piece.base_file.path for piece in table.data.view.latest_slices() if piece.base_file is not None}
    files = listed_files(table)
    paths = [join_path(row["partition_path"], row["name"]) for row in files.to_pylist()]
    return files.filter(pa.array([path in latest for path in paths], pa.bool_()))


def latest_files(state: TableState, path: str) -> pa.Table:
    """Base files and logs of the newest slices of a partition, in the columns of `LISTED`; sizes are 0."""
    slices = state.view.latest_slices(path)
    names = [file.name for piece in slices for file in (piece.base_file, *piece.log_files) if file is not None]
    return pa.table([[path] * len(names), names, [0] * len(names)], schema=LISTED)


def parsed(files: pa.Table) -> Iterator[BaseFile]:
    """The base files among `files` (in the columns of `LISTED`)."""
    for row in files.to_pylist():
        if is_base_file_name(row["name"]):
            yield parse_base_file(row["partition_path"], row["name"], row["size"])
