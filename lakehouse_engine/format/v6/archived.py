"""Files of the archived timeline (hudi-format 8; Hudi `HoodieArchivedMetaEntry`, `HoodieTimelineArchiver`).

`.commits_.archive.<N>_1-0-1` is a log file of Avro blocks whose header holds only the schema; a record is one state of one instant. Hudi
reads only known header keys, so this engine's seal is in the text of the schema, where Avro allows properties: a checksum of schema and
content, and the number of the block and of all blocks in its file. A file that lacks some of them was cut short. The first block of a
merged file names the files merged into it, and each first block names the file before it, so that a deleted one is missed.
"""

from __future__ import annotations

import io
import json
import logging
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import fastavro

from lakehouse_engine.errors import CorruptLogError, MetadataError
from lakehouse_engine.format.log.blocks import CONTENT_VERSION, BlockType, HeaderKey, LogBlock
from lakehouse_engine.format.log.data_block import record_bounds
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.format.seal import BLANK_SEAL, BROKEN_SEAL, SEAL_KEY, is_intact_behind, seal_behind
from lakehouse_engine.format.v6.metadata_avro import schema_text
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Action, Instant, State

logger = logging.getLogger(__name__)

MERGE_PLAN = "mergeArchivePlan"
_ENTRY = "HoodieArchivedMetaEntry"
_FILE = re.compile(r"\.commits_\.archive\.([0-9]+)(?:_[0-9]+-[0-9]+-[0-9]+)?")
_OF_INSTANT = ("commitTime", "actionType", "actionState")
_STATES = {state.name: state for state in State}
_HEAD = f'{{"{SEAL_KEY}":"'.encode()
_OURS = re.compile(
    rf'\{{"{re.escape(SEAL_KEY)}":".{{{len(BLANK_SEAL)}}}","lakehouse\.block":"([0-9]+)/([0-9]+)",(?:"lakehouse\.merged":"([^"]*)",)?'
    r'(?:"lakehouse\.after":"([^"]*)",)?'
)


def archive_file_name(number: int) -> str:
    """The name of the archive file with this number, counted from 1."""
    return f".commits_.archive.{number}_1-0-1"


def archive_file_number(name: str) -> int | None:
    """The number of an archive file; None for any other name."""
    match = _FILE.fullmatch(name)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class ArchiveLinks:
    """References to other archive files: `merged` are those merged into this one, `after` those that existed before it. `is_ours` is True
    if this engine wrote them.
    """

    merged: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    is_ours: bool = False


def render_archive(
    instants: Iterable[Sequence[ArchivedEntry]], batch: int, *, sealed: bool = True, after: Iterable[str] = ()
) -> bytes:
    """The content of one archive file: the entries of each instant, in order. Not `sealed`, the bytes are as Hudi's. `after`: names of the
    files before it.

    A block is closed after the instant with which it reaches `batch` records. Raises `MetadataError` if a record does not fit the schema.
    """
    contents: list[bytes] = []
    records: list[bytes] = []
    for entries in instants:
        records += [_encode(entry) for entry in entries]
        if len(records) >= batch:
            contents.append(_content(records))
            records = []
    contents += [_content(records)] if records else []
    places = [f"{number}/{len(contents)}" if sealed else None for number in range(1, len(contents) + 1)]
    first = tuple(after)
    return b"".join(
        _block(content, place, after=() if number else first) for number, (content, place) in enumerate(zip(contents, places, strict=True))
    )


def merge_archives(files: Mapping[str, Sequence[LogBlock]]) -> bytes:
    """One archive file with the `archive_blocks` of several files, given by name, in that order. Records are copied as stored, in any
    schema.
    """
    blocks = [block for part in files.values() for block in part]
    schemas = [_OURS.sub("{", block.schema or "", count=1).lstrip() for block in blocks]
    links = ArchiveLinks(tuple(files), _before_all(files))
    return b"".join(
        _block(
            bytes(block.content),
            f"{number}/{len(blocks)}",
            schema,
            merged=links.merged if number == 1 else (),
            after=links.after if number == 1 else (),
        )
        for number, (block, schema) in enumerate(zip(blocks, schemas, strict=True), 1)
    )


def _before_all(files: Mapping[str, Sequence[LogBlock]]) -> tuple[str, ...]:
    named = dict.fromkeys(name for blocks in files.values() for name in archive_links(blocks).after)
    inside = {*files, *(name for blocks in files.values() for name in archive_links(blocks).merged)}
    return tuple(name for name in named if name not in inside)


def archive_blocks(data: bytes) -> list[LogBlock]:
    """The blocks of an archive file, verified: blocks without this engine's seal are decoded. Raises as `read_archive`."""
    blocks = list(_blocks(data))
    for block in blocks:
        if _OURS.match(block.schema or "") is None:
            _whole(block)
    return blocks


def merged_from(blocks: Iterable[LogBlock]) -> tuple[str, ...]:
    """Source names of a merged archive file; empty for any other file."""
    return archive_links(blocks).merged


def archive_links(blocks: Iterable[LogBlock]) -> ArchiveLinks:
    """The references to other files in the first block of an archive file."""
    first = next(iter(blocks), None)
    ours = None if first is None or first.type is not BlockType.AVRO_DATA else _OURS.match(first.schema or "")
    return ArchiveLinks() if ours is None else ArchiveLinks(tuple((ours[3] or "").split()), tuple((ours[4] or "").split()), True)


def read_archive(data: bytes, sought: bytes = b"") -> list[ArchivedEntry]:
    """The entries of an archive file, in stored order; with `sought`, only those of blocks whose bytes contain it.

    Raises `CorruptLogError` for a damaged file, `MetadataError` for a record that is not an archived instant.
    """
    return [entry for block in _blocks(data) if not sought or sought in bytes(block.content) for entry in _whole(block)]


def read_archived_instants(data: bytes) -> list[Instant]:
    """The instants of an archive file without their contents, in stored order; raises as `read_archive`."""
    return [_instant(record) for block in _blocks(data) for record in _records(block, _brief())]


def _whole(block: LogBlock) -> list[ArchivedEntry]:
    return [_entry(record) for record in _records(block, None)]


def salvage_archive(data: bytes) -> list[ArchivedEntry]:
    """The entries in the whole blocks of a damaged archive file, in stored order."""
    return [entry for block in read_blocks(data) if block.type is BlockType.AVRO_DATA for entry in _salvaged(block)]


def _salvaged(block: LogBlock) -> list[ArchivedEntry]:
    try:
        _place(block)
        return _whole(block)
    except (CorruptLogError, MetadataError) as error:
        logger.warning("a block of an archive file is left out: %s", error)
        return []


def _encode(entry: ArchivedEntry) -> bytes:
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, _ours(), entry.record)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise MetadataError(f"{entry.instant} does not fit {_ENTRY}: {error}", instant=entry.instant) from error
    return body.getvalue()


def _content(records: Sequence[bytes]) -> bytes:
    return struct.pack(">ii", CONTENT_VERSION, len(records)) + b"".join(struct.pack(">i", len(record)) + record for record in records)


def _block(
    content: bytes, place: str | None, written: str | None = None, *, merged: Sequence[str] = (), after: Sequence[str] = ()
) -> bytes:
    """Encode one block. `place`: number of the block / of all blocks of its file, both counted from 1; None for no seal. `written`: the
    schema, if not this engine's current one. `merged` and `after` as in `ArchiveLinks`.
    """
    schema = schema_text(_ENTRY) if written is None else written.encode()
    if place is not None:
        mark = f'"lakehouse.merged":"{" ".join(merged)}",' if merged else ""
        mark += f'"lakehouse.after":"{" ".join(after)}",' if after else ""
        rest = f'","lakehouse.block":"{place}",{mark}'.encode() + schema.removeprefix(b"{")
        schema = seal_behind(_HEAD, rest + content)[: -len(content)]
    return render_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema.decode("utf-8")}, content)


def _blocks(data: bytes) -> Iterator[LogBlock]:
    """Yield every block, verified; archive files only ever have Avro blocks, Hudi's too."""
    if not data:
        raise CorruptLogError("an archive file is empty: its writer died, or it was damaged")
    wanted: set[tuple[int, int]] = set()
    found: set[tuple[int, int]] = set()
    for block in read_blocks(data):
        if block.type is not BlockType.AVRO_DATA:
            raise CorruptLogError(f"an archive file is damaged from byte {block.offset} on: {block.damage or f'a {block.type.name} block'}")
        place = _place(block)
        if place is not None:
            found.add(place)
            wanted.update((number, place[1]) for number in range(1, place[1] + 1))
        yield block
    if wanted - found:
        raise CorruptLogError(f"an archive file lacks {len(wanted - found)} of its blocks: it was cut short")


def _place(block: LogBlock) -> tuple[int, int] | None:
    """Number of a block of this engine, and of all blocks of its file; None for another writer's block. Raises `CorruptLogError`."""
    text = block.schema or ""
    if is_intact_behind(_HEAD, text.encode() + bytes(block.content)) is False:
        raise CorruptLogError(f"{block.length} bytes of an archive file from byte {block.offset} on {BROKEN_SEAL}")
    ours = _OURS.match(text)
    return (int(ours[1]), int(ours[2])) if ours else None


def _records(block: LogBlock, wanted: Any) -> Iterator[dict[str, Any]]:
    try:
        # Without the parts that differ from block to block, the schema is parsed once.
        written = _parsed(_OURS.sub("{", block.schema or "", count=1))
        for start, end in zip(*record_bounds(block.content), strict=True):
            record = fastavro.schemaless_reader(io.BytesIO(block.content[start:end]), written, wanted)
            if not isinstance(record, dict):
                raise MetadataError(f"an archive file holds {type(record).__name__} where a record was expected")
            yield record
    except MetadataError:
        raise
    except Exception as error:  # as for plans: a damaged number raises any of a dozen fastavro exceptions
        raise CorruptLogError(f"a block of an archive file does not decode: {error!r}") from error


def _entry(record: dict[str, Any]) -> ArchivedEntry:
    return ArchivedEntry(_instant(record), record.get("stateTransitionTime"), record)


def _instant(record: dict[str, Any]) -> Instant:
    time, action, state = (record.get(name) for name in _OF_INSTANT)
    try:
        # Archives of old releases have no state: they held completed instants only.
        return Instant(str(time), Action(str(action)), _STATES[str(state)] if state else State.COMPLETED)
    except (ValueError, KeyError) as error:
        raise MetadataError(f"an archive file has {action!r} of {time!r} in state {state!r}, which is no instant") from error


@cache
def _ours() -> Any:
    return fastavro.parse_schema(json.loads(schema_text(_ENTRY)))


@cache
def _brief() -> Any:
    """The schema of records without the members that are costly to decode."""
    schema = json.loads(schema_text(_ENTRY))
    return fastavro.parse_schema({**schema, "fields": [field for field in schema["fields"] if field["name"] in _OF_INSTANT]})


@lru_cache(maxsize=8)
def _parsed(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))
