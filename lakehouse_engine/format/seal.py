"""A checksum inside the bytes that it covers, so that a single flipped bit anywhere is detected.

Formats that Hudi reads have no room for a checksum beside their content, but most accept a text under a key of this engine: the extra
metadata of a commit, the header of an Avro file, the key-value metadata of a Parquet footer. The text has a fixed width: the content is
rendered with a blank, which is then replaced by the CRC of the whole. Readers that do not know it ignore it.
"""

from __future__ import annotations

import re
import zlib

SEAL_KEY = "lakehouse.seal"
"""Key of the seal's text."""

BLANK_SEAL = "crc32:--------"
"""Placeholder to render the content with."""

BROKEN_SEAL = (
    "do not fit the checksum that they were written with: the file was damaged. Put it back from a backup, or restore the table to a"
    " savepoint"
)
"""End of the error message for content that fails its checksum."""

_BLANK = BLANK_SEAL.encode()
# Between the key and its text are at most the quotes, colon and spaces of JSON or the length bytes of Avro and Thrift.
_SEAL = re.compile(rb"lakehouse\.seal.{1,12}?(crc32:[0-9a-f]{8})", re.DOTALL)


def seal(content: bytes) -> bytes:
    """Put the checksum of `content` into its one `BLANK_SEAL`. Raises `ValueError` unless there is exactly one."""
    if content.count(_BLANK) != 1:
        raise ValueError(f"the content has {content.count(_BLANK)} blanks for a seal, and must have one")
    return content.replace(_BLANK, _text(content))


def is_intact(content: bytes) -> bool | None:
    """True if `content` is as it was sealed; None if it has no seal, as from other writers."""
    found = _SEAL.search(content)
    if found is None:
        return None
    blank = content[: found.start(1)] + _BLANK + content[found.end(1) :]
    return found.group(1) == _text(blank)


def seal_behind(head: bytes, rest: bytes) -> bytes:
    """`head`, a seal of the whole, `rest`. The fixed place prevents other content from being taken for the seal."""
    return head + _text(head + _BLANK + rest) + rest


def is_intact_behind(head: bytes, content: bytes) -> bool | None:
    """As `is_intact`, for content that `seal_behind` made with this `head`; None if it begins otherwise."""
    if not content.startswith(head):
        return None
    end = len(head) + len(_BLANK)
    return content[len(head) : end] == _text(head + _BLANK + content[end:])


def _text(blank: bytes) -> bytes:
    return b"crc32:%08x" % zlib.crc32(blank)
