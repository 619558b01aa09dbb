"""The history of timeline layout 2: archived instants in Parquet files, in levels, listed by manifests (hudi-format II.2; Hudi
`LSMTimeline`).

`_version_` names the current `manifest_<n>`, which lists the current files. A file holds completed instants in order of requested times;
enough files of one level are merged into one of the next.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse_engine.errors import CorruptFileError, FileNameError, FormatError, MetadataError, TimelineError
from lakehouse_engine.format.json_text import render_json
from lakehouse_engine.format.parquet_seal import SealingSink, check_pages, read_metadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import age, in_time_order

VERSION_FILE = "_version_"

_MANIFEST = re.compile(r"manifest_([0-9]+)")
_FILE = re.compile(r"([0-9]+)_([0-9]+)_([0-9]+)\.parquet")
_RECORD_VERSION = 1
_TIMES = ("instantTime", "completionTime", "action")
_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TIMES),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_TEXT = ["null", {"type": "string", "avro.java.string": "String"}]
_AVRO_SCHEMA = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *({"name": name, "type": _TEXT, "default": None} for name in _TIMES),
        *({"name": name, "type": ["null", "bytes"], "default": None} for name in ("metadata", "plan")),
        {"name": "version", "type": "int", "default": _RECORD_VERSION},
    ],
}


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file of the history: instants with requested times from `first` to `last`, at `level`, of `size` bytes."""

    first: str
    last: str
    level: int
    size: int

    @property
    def name(self) -> str:
        return f"{self.first}_{self.last}_{self.level}.parquet"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An archived, completed instant. `metadata` is its completed file, `plan` its requested one; None if that was empty.

    For a replace commit without a clustering plan, Hudi stores the inflight file as `plan`.
    """

    instant: Instant
    metadata: bytes | None = field(default=None, repr=False)
    plan: bytes | None = field(default=None, repr=False)


def parse_history_file(name: str, size: int) -> HistoryFile:
    """Parse `<first>_<last>_<level>.parquet`. Raises `FileNameError`."""
    match = _FILE.fullmatch(name)
    if match is None:
        raise FileNameError(f"{name!r} is no file of a timeline's history: expected <first instant>_<last instant>_<level>.parquet")
    return HistoryFile(match[1], match[2], int(match[3]), size)


def manifest_name(number: int) -> str:
    """File name of a manifest of the history."""
    return f"manifest_{number}"


def manifest_number(name: str) -> int | None:
    """The number of a manifest; None for any other name."""
    match = _MANIFEST.fullmatch(name)
    return int(match[1]) if match else None


def current_manifest(version: bytes | None, names: Iterable[str]) -> int | None:
    """Number of the current manifest, from the content of `_version_` and the names in the folder; None for a table without history.

    A writer deletes `_version_` before it writes the next one, so if it is missing or empty, the newest manifest counts, as in Hudi. Raises
    `MetadataError` if the version is not a number.
    """
    if version:
        text = version.decode("ascii", "replace")
        if not (text.isascii() and text.isdigit()):
            raise MetadataError(
                f"{VERSION_FILE} of the timeline's history says {text[:40]!r}, which is no number: the file was damaged; put it back from a"
                " backup, or delete it: the newest manifest counts then"
            )
        return int(text)
    return max((number for name in names if (number := manifest_number(name)) is not None), default=None)


def render_version(number: int) -> bytes:
    """The content of `_version_`."""
    return str(number).encode()


def parse_manifest(data: bytes) -> tuple[HistoryFile, ...]:
    """The files that a manifest lists, in its order. Raises `MetadataError`."""
    try:
        listed = json.loads(data)["files"]
        return tuple(parse_history_file(entry["fileName"], int(entry["fileLen"])) for entry in listed)
    except (ValueError, TypeError, KeyError) as error:
        raise MetadataError(f"{len(data)} bytes of a manifest of the timeline's history do not parse: {error!r}") from error


def render_manifest(files: Iterable[HistoryFile]) -> bytes:
    """A manifest that lists these files in this order."""
    return render_json({"files": [{"fileName": file.name, "fileLen": file.size} for file in files]})


def read_history_times(data: bytes, file: HistoryFile) -> list[Instant]:
    """The instants of a file, with their completion times, without reading contents. Raises `CorruptFileError`."""
    return list(_instants(_read(data, file, list(_TIMES)), file))


def read_moments(data: bytes, file: HistoryFile) -> dict[str, str]:
    """Time at which each instant of a file takes effect, by requested time: when a compaction or log compaction was planned (only those
    commits have a plan), and when any other instant was completed. Raises `CorruptFileError`.
    """
    table = _read(data, file, [*_TIMES, "plan"])
    commits = pc.and_(pc.is_in(table["action"], pa.array([str(Action.COMMIT), str(Action.DELTA_COMMIT)])), pc.is_valid(table["plan"]))
    shown = {one.requested_time: one.completed_at or one.requested_time for one in _instants(table, file)}
    return shown | {time: time for time in table.filter(commits)["instantTime"].to_pylist()}


def read_history(data: bytes, file: HistoryFile) -> Iterator[HistoryEntry]:
    """The instants of a file with their contents. Raises `CorruptFileError`."""
    table = _read(data, file, None)
    for instant, metadata, plan in zip(_instants(table, file), table["metadata"], table["plan"], strict=True):
        yield HistoryEntry(instant, metadata.as_py(), plan.as_py())


def render_history(entries: Sequence[HistoryEntry], level: int = 0) -> tuple[HistoryFile, bytes]:
    """A new file with these instants. Raises `FormatError` if there are none, one is not completed, or they are out of order."""
    times = [entry.instant.requested_time for entry in entries]
    if not times or times != in_time_order(times, age) or not all(entry.instant.is_completed for entry in entries):
        raise FormatError("a file of a timeline's history takes completed instants, at least one, in order of their requested times")
    rows = pa.table(
        [
            times,
            [entry.instant.completed_at for entry in entries],
            [str(entry.instant.action) for entry in entries],
            [entry.metadata for entry in entries],
            [entry.plan for entry in entries],
            [_RECORD_VERSION] * len(entries),
        ],
        schema=_SCHEMA,
    )
    data = _written(rows)
    return HistoryFile(times[0], times[-1], level, len(data)), data


def merge_histories(sources: Sequence[tuple[HistoryFile, bytes]]) -> tuple[HistoryFile, bytes]:
    """One file of the next level with all instants of these files. Raises `FormatError` if there are no files, and `CorruptFileError`."""
    if not sources:
        raise FormatError("there is nothing to merge in the timeline's history")
    rows = pa.concat_tables([_read(data, file, None) for file, data in sources]).sort_by("instantTime")
    data = _written(rows)
    first, last = min(file.first for file, _ in sources), max(file.last for file, _ in sources)
    return HistoryFile(first, last, sources[0][0].level + 1, len(data)), data


def files_to_merge(files: Iterable[HistoryFile], *, batch: int, most_bytes: int) -> tuple[HistoryFile, ...]:
    """The oldest files of the lowest level that has `batch` files, until their size exceeds `most_bytes`; empty if no merge is due.

    A file that alone is larger is left out, as in Hudi (`LSMTimelineWriter.getCandidateFiles`).
    """
    known = sorted(files, key=lambda file: file.name)
    for level in sorted({file.level for file in known}):
        found = [file for file in known if file.level == level]
        chosen = _consecutive(found, batch, most_bytes) if len(found) >= batch else ()
        if len(chosen) > 1:
            return chosen
    return ()


def _consecutive(files: Sequence[HistoryFile], batch: int, most_bytes: int) -> tuple[HistoryFile, ...]:
    chosen: list[HistoryFile] = []
    for file in files:
        chosen.append(file)
        if len(chosen) >= batch:
            break
        if sum(one.size for one in chosen) > most_bytes:
            if len(chosen) > 1:
                break
            chosen.clear()
    return tuple(chosen)


def _read(data: bytes, file: HistoryFile, columns: list[str] | None) -> pa.Table:
    if len(data) != file.size:
        raise CorruptFileError(f"{file.name} of the timeline's history has {len(data)} bytes, and its manifest says {file.size}")
    try:
        source = pa.BufferReader(data)
        metadata = read_metadata(source)
        check_pages(source, metadata)
        parquet = pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True)
        table = parquet.read(columns)
        table.validate(full=True)
        return table.cast(pa.schema([_SCHEMA.field(name) for name in table.column_names]))
    except (pa.ArrowException, OSError, ValueError, KeyError, FormatError) as error:
        raise CorruptFileError(f"{file.name} of the timeline's history cannot be read: {error}") from error


def _instants(table: pa.Table, file: HistoryFile) -> Iterator[Instant]:
    """Instants of a file's rows. One without a completion time completed when it was requested, as in Hudi (`CompletionTimeQueryViewV2`).
    """
    rows = zip(*(table[name].to_pylist() for name in _TIMES), strict=True)
    try:
        for time, completed_at, action in rows:
            yield Instant(time or "", Action(action), State.COMPLETED, completed_at or time)
    except (ValueError, TimelineError) as error:
        raise CorruptFileError(f"{file.name} of the timeline's history has what is no instant: {error}") from error


def _written(rows: pa.Table) -> bytes:
    target = io.BytesIO()
    sink = SealingSink(target)
    with pq.ParquetWriter(
        sink,
        _SCHEMA,
        compression="gzip",
        use_dictionary=False,
        write_statistics=list(_TIMES),
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        writer.write_table(rows.cast(_SCHEMA), row_group_size=max(1, rows.num_rows))
        texts = {"parquet.avro.schema": json.dumps(_AVRO_SCHEMA, separators=(",", ":")), "writer.model.name": "avro"}
        # The seal comes last, to distinguish it from texts that look like one.
        writer.add_key_value_metadata({**texts, **sink.hold()})
    sink.finish()
    return target.getvalue()
