"""A checksum inside the bytes that it is of, so that one flipped bit shows wherever it is.

Formats that Hudi reads have no room for a checksum beside their content, but most take a text of ours under a key of ours: the extra
metadata of a commit, the header of an Avro file, the key-value metadata of a Parquet footer. The text has a fixed width: the content is
rendered with a blank in that place, and the blank is then replaced by the CRC of the whole. Readers that know nothing of it pass it over.
"""

from __future__ import annotations

import re
import zlib

SEAL_KEY = "lakehouse.seal"
"""Under this key the text stands."""

BLANK_SEAL = "crc32:--------"
"""What to render the content with."""

BROKEN_SEAL = (
    "do not fit the checksum that they were written with: the file was damaged. Put it back from a backup, or restore the table to a"
    " savepoint"
)
"""What to say of content that is not intact, behind what it is."""

_BLANK = BLANK_SEAL.encode()
# Between the key and its text stand at most the quotes, colon and spaces of JSON or the length bytes of Avro and Thrift.
_SEAL = re.compile(rb"lakehouse\.seal.{1,12}?(crc32:[0-9a-f]{8})", re.DOTALL)


def seal(content: bytes) -> bytes:
    """`content`, rendered with one `BLANK_SEAL`, with its checksum in that place. Raises `ValueError` where there is not exactly one."""
    if content.count(_BLANK) != 1:
        raise ValueError(f"the content has {content.count(_BLANK)} blanks for a seal, and must have one")
    return content.replace(_BLANK, _text(content))


def is_intact(content: bytes) -> bool | None:
    """Whether `content` is as it was sealed; None where it has no seal, as what others wrote."""
    found = _SEAL.search(content)
    if found is None:
        return None
    blank = content[: found.start(1)] + _BLANK + content[found.end(1) :]
    return found.group(1) == _text(blank)


def seal_behind(head: bytes, rest: bytes) -> bytes:
    """`head`, a seal of the whole, `rest`. In a fixed place nothing else in the content can be taken for the seal."""
    return head + _text(head + _BLANK + rest) + rest


def is_intact_behind(head: bytes, content: bytes) -> bool | None:
    """As `is_intact`, for what `seal_behind` made with that `head`; None for content that begins otherwise."""
    if not content.startswith(head):
        return None
    end = len(head) + len(_BLANK)
    return content[len(head) : end] == _text(head + _BLANK + content[end:])


def _text(blank: bytes) -> bytes:
    return b"crc32:%08x" % zlib.crc32(blank)
