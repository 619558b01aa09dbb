"""Plans and their outcomes as Avro object containers: one record, no compression (hudi-format 2.2 and 2.4).

The first entry of the container's metadata is this engine's seal; Avro allows applications to add entries there. The last entry is a note,
if the engine has something to record that the record's schema has no member for.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import fastavro

from lakehouse_engine.errors import CorruptInstantError, MetadataError
from lakehouse_engine.format.seal import BLANK_SEAL, BROKEN_SEAL, SEAL_KEY, is_intact_behind, seal_behind
from lakehouse_engine.format.varint import encode_varint

if TYPE_CHECKING:
    from importlib.abc import Traversable

_MAGIC = b"Obj\x01"
_NOTE_KEY = "lakehouse.note"
_LONG: Any = fastavro.parse_schema("long")
_HEAD: Any = fastavro.parse_schema(
    {
        "type": "record",
        "name": "org.apache.avro.file.Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
        ],
    }
)


def encode_record(schema_name: str, record: Mapping[str, Any], *, sealed: bool = True, note: str | None = None) -> bytes:
    """Encode a record; `schema_name` is a file in `schemas/`, and the record has Avro's member names. Neither `sealed` nor with a note, the
    bytes are as Hudi's.

    Raises `MetadataError` if the record does not fit the schema.
    """
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, _schema(schema_name), dict(record), strict_allow_default=True)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise MetadataError(f"a record does not fit {schema_name}: {error}") from error
    return _container(schema_text(schema_name), body.getvalue(), sealed=sealed, note=note)


def decode_record(schema_name: str, data: bytes) -> dict[str, Any]:
    """Decode a record, written with any schema, into this engine's schema: missing members take its defaults, unknown ones are dropped.

    Raises `CorruptInstantError` if the bytes are empty, cut short or not as they were sealed, `MetadataError` if they hold another kind of
    record.
    """
    container = _opened(schema_name, data)
    if container.name != schema_name:
        raise MetadataError(f"an Avro container holds {container.name!r} where {schema_name} was expected")
    return _only_record(schema_name, data, container)


def decode_note(schema_name: str, data: bytes) -> str | None:
    """The note of a record; None if it has none. Raises as `decode_record`."""
    decode_record(schema_name, data)
    note = _opened(schema_name, data).metadata.get(_NOTE_KEY)
    return None if note is None else note.decode("utf-8")


def record_name(expected: str, data: bytes) -> str:
    """Name of the schema that the record was written with. Raises `CorruptInstantError` as `decode_record`, naming the `expected` schema.
    """
    return _opened(expected, data).name


class _Container(NamedTuple):
    """The head of a container; its blocks begin at `blocks`. `is_ours` is True if the schema equals this engine's, apart from `doc`."""

    name: str
    schema: Any
    is_ours: bool
    metadata: Mapping[str, bytes]
    sync: bytes
    blocks: int


def _opened(expected: str, data: bytes) -> _Container:
    if not data:
        raise CorruptInstantError(f"a {expected} file is empty: its writer died, or the file was damaged")
    if not data.startswith(_MAGIC):
        raise CorruptInstantError(f"{len(data)} bytes of a {expected} file are no Avro container")
    if any(is_intact_behind(_sealed_head(entries), data) is False for entries in (2, 3)):
        raise CorruptInstantError(f"{len(data)} bytes of a {expected} file {BROKEN_SEAL}")
    stream = io.BytesIO(data)
    try:
        head: Any = fastavro.schemaless_reader(stream, _HEAD, None)
        name, schema, is_ours = _written(head["meta"]["avro.schema"])
    except Exception as error:  # fastavro raises whatever its parser runs into
        raise CorruptInstantError(f"the header of a {expected} file does not parse: {error!r}") from error
    return _Container(name, schema, is_ours, head["meta"], head["sync"], stream.tell())


@lru_cache(maxsize=64)
def _written(text: bytes) -> tuple[str, Any, bool]:
    """Name and parsed form of a writer's schema, and whether it is this engine's. Each release of Hudi has one text per kind of record."""
    written = json.loads(text)
    name = str(written.get("name") if isinstance(written, dict) else written).rpartition(".")[2]
    is_ours = _is_known(name) and _undocumented(written) == json.loads(schema_text(name))
    return name, fastavro.parse_schema(written), is_ours


def _undocumented(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_undocumented(part) for part in schema]
    return {key: _undocumented(part) for key, part in schema.items() if key != "doc"} if isinstance(schema, dict) else schema


def is_sealed(data: bytes) -> bool:
    """True if this engine wrote the container, intact or not."""
    return any(data.startswith(_sealed_head(entries)) for entries in (2, 3))


def _only_record(schema_name: str, data: bytes, container: _Container) -> dict[str, Any]:
    try:
        # Asking for a second record, which should not exist, makes the reader check the end of the block.
        records = list(islice(_records(schema_name, data, container), 2))
    except Exception as error:  # as above: a damaged varint raises any of a dozen exceptions
        raise CorruptInstantError(f"{len(data)} bytes of a {schema_name} file do not decode: {error!r}") from error
    if not records:
        raise CorruptInstantError(f"a {schema_name} file ends before its record")
    if len(records) > 1 or not isinstance(records[0], dict):
        raise MetadataError(f"a {schema_name} file has more than one record, or another value")
    return records[0]


def _records(schema_name: str, data: bytes, container: _Container) -> Iterator[Any]:
    """Yield the records of a container. Unlike `fastavro.reader`, this does not parse both schemas for every file."""
    if container.metadata.get("avro.codec", b"null") != b"null":
        yield from fastavro.reader(io.BytesIO(data), reader_schema=_schema(schema_name))
        return
    stream = io.BytesIO(data)
    stream.seek(container.blocks)
    # Resolving one schema against the other takes most of the time, and releases mostly differ only in `doc`.
    wanted = None if container.is_ours else _schema(schema_name)
    while stream.tell() < len(data):
        count: Any = fastavro.schemaless_reader(stream, _LONG, None)
        size: Any = fastavro.schemaless_reader(stream, _LONG, None)
        end = stream.tell() + size
        for _ in range(count):
            yield fastavro.schemaless_reader(stream, container.schema, wanted)
        if stream.tell() != end or stream.read(len(container.sync)) != container.sync:
            raise ValueError("a block does not end where it should")


def _container(schema: bytes, record: bytes, *, sealed: bool, note: str | None) -> bytes:
    """A container as Hudi writes it, whose only metadata is the schema, plus seal and note.

    The sync marker is derived from the content, so that equal records give equal files.
    """
    sync = hashlib.md5(record, usedforsecurity=False).digest()
    noted = b"" if note is None else _text(_NOTE_KEY.encode()) + _text(note.encode())
    rest = _text(b"avro.schema") + _text(schema) + noted + _long(0) + sync + _long(1) + _long(len(record)) + record + sync
    entries = 1 if note is None else 2
    return seal_behind(_sealed_head(entries + 1), rest) if sealed else _MAGIC + _long(entries) + rest


@cache
def _sealed_head(entries: int) -> bytes:
    """The bytes before the seal, which is the first of `entries` metadata entries."""
    return _MAGIC + _long(entries) + _text(SEAL_KEY.encode()) + _long(len(BLANK_SEAL))


def _text(text: bytes) -> bytes:
    return _long(len(text)) + text


def _long(value: int) -> bytes:
    """Avro's variable-length form of a non-negative number."""
    return encode_varint(value << 1)


@cache
def _schema(schema_name: str) -> Any:
    return fastavro.parse_schema(json.loads(schema_text(schema_name)))


def _is_known(schema_name: str) -> bool:
    return schema_name.isidentifier() and _stored(schema_name).is_file()


@cache
def schema_text(schema_name: str) -> bytes:
    """The schema in `schemas/` as Hudi writes it, without white space."""
    return json.dumps(json.loads(_stored(schema_name).read_text(encoding="utf-8")), separators=(",", ":")).encode("utf-8")


def _stored(schema_name: str) -> Traversable:
    return resources.files(__package__).joinpath("schemas").joinpath(f"{schema_name}.avsc")
