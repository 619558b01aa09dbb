"""Partition values to directory names and back (table format, "Partition path encoding"; Hudi `PartitionPathEncodeUtils`).

A path is checked after encoding, segment by segment, as the storage will see it: a value can only become directories below the table, never
the table's own `.hoodie`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import PartitionValueError

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Stands for null and for the empty text."""
MAX_SEGMENT_BYTES = 255
"""Longest directory name that file systems accept, in bytes."""

_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
_ESCAPE_SEQUENCE = re.compile(r"%([0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ENCODE_HINT = "or create the table with url-encoded partition paths"


def escape_path_name(text: str) -> str:
    """Percent-escape characters that Hive does not allow in a directory name."""
    return _ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", text)


def unescape_path_name(text: str) -> str:
    """Inverse of `escape_path_name`; a `%` without two hex digits stands for itself."""
    return _ESCAPE_SEQUENCE.sub(lambda found: chr(int(found.group(1), 16)), text)


def encode_partition_paths(columns: Sequence[pa.Array], fields: Sequence[str], *, hive_style: bool, url_encode: bool) -> pa.Array:
    """Partition paths (relative to the table) of rows whose partition values have the texts `columns`, one array per field.

    Raises `PartitionValueError` with column and value for one that cannot be a directory below the table.
    """
    pieces = [
        encode_partition_values(column, field, hive_style=hive_style, url_encode=url_encode, first=index == 0)
        for index, (column, field) in enumerate(zip(columns, fields, strict=True))
    ]
    return join_pieces(pieces)


def encode_partition_values(texts: pa.Array, field: str, *, hive_style: bool, url_encode: bool, first: bool) -> pa.Array:
    """One field's part of the path for every row; `first` if it starts the path. Raises `PartitionValueError`."""
    encoded = texts.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary.to_pylist()
    pieces = [_encode(value, field, hive_style, url_encode) for value in distinct]
    check_partition_paths(pieces, distinct, field, first=first)
    return pa.array(pieces, pa.string()).take(encoded.indices)


def join_pieces(pieces: Sequence[pa.Array]) -> pa.Array:
    """The fields' parts joined to paths."""
    return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, "/")


def check_partition_paths(paths: Sequence[str], values: Sequence[str | None], field: str, *, first: bool = True) -> None:
    """Refuse paths (encoded, each with its value) that are not plain directories below the table.

    Raises `PartitionValueError` with column, value and reason.
    """
    for path, value in zip(paths, values, strict=True):
        fault = _fault(path, first)
        if value == DEFAULT_PARTITION:
            fault = "Hudi writes this text for null, so the value could not be told from it; use null"
        if fault:
            raise PartitionValueError(f"the value {value!r} of the column {field!r} cannot be a partition: {fault}", column=field)


def decode_partition_path(path: str, fields: Sequence[str], hive_style: bool, url_encoded: bool) -> dict[str, str | None]:
    """Texts of the partition values by field; None for the default partition.

    The path is split before anything is unescaped. Without url encoding, the value of a single field may span several directories. Raises
    `PartitionValueError` if the path does not have the fields.
    """
    pieces = _split(path, fields, hive_style)
    values: dict[str, str | None] = {}
    for field, piece in zip(fields, pieces, strict=True):
        text = piece
        if hive_style:
            if not piece.startswith(f"{field}="):
                raise _not_a_path(path, fields, hive_style)
            text = piece[len(field) + 1 :]
        values[field] = None if text == DEFAULT_PARTITION else unescape_path_name(text) if url_encoded else text
    return values


def _split(path: str, fields: Sequence[str], hive_style: bool) -> list[str]:
    if not fields:
        if path:
            raise _not_a_path(path, fields, hive_style)
        return []
    if len(fields) == 1:
        return [path]
    pieces: list[str] = []
    for segment in path.split("/"):
        starts_next = len(pieces) < len(fields) and (not hive_style or segment.startswith(f"{fields[len(pieces)]}="))
        if starts_next:
            pieces.append(segment)
        elif hive_style and pieces:
            pieces[-1] += f"/{segment}"
        else:
            raise _not_a_path(path, fields, hive_style)
    if len(pieces) != len(fields):
        raise _not_a_path(path, fields, hive_style)
    return pieces


def _not_a_path(path: str, fields: Sequence[str], hive_style: bool) -> PartitionValueError:
    style = "field=value directories" if hive_style else "plain directories"
    return PartitionValueError(f"the partition path {path!r} is not made of {style} for the partition fields {list(fields)}")


def _encode(value: str | None, field: str, hive_style: bool, url_encode: bool) -> str:
    text = value or DEFAULT_PARTITION
    if url_encode:
        text = escape_path_name(text)
    return f"{field}={text}" if hive_style else text


def _fault(path: str, first: bool) -> str | None:
    """Why a path cannot be directories below the table; None if it can."""
    if "%00" in path or _CONTROL.search(path):
        return f"it holds a control character; remove it, {_ENCODE_HINT} (which takes all but NUL)"
    if "\\" in path or ":" in path:
        return f"'\\' and ':' mean something else in the paths of some storages and of Hadoop; replace them, {_ENCODE_HINT}"
    segments = path.split("/")
    if "" in segments:
        return f"it starts or ends with '/' or has two of them in a row; remove them, {_ENCODE_HINT}"
    if "." in segments or ".." in segments:
        return "the directories '.' and '..' would lead out of the partition or of the table; replace the value"
    if first and segments[0].lower().startswith(".hoodie"):
        return "directories that start with '.hoodie' are Hudi's own; replace the value, or use hive-style partition paths"
    longest = max(len(segment.encode()) for segment in segments)
    if longest > MAX_SEGMENT_BYTES:
        return f"its directory name takes {longest} bytes, and {MAX_SEGMENT_BYTES} is the most that file systems take; shorten it"
    return None
