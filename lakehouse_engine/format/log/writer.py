"""Encodes blocks as the bytes of a log file."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from lakehouse_engine.format.log.blocks import FORMAT_VERSION, MAGIC, ROLLBACK_COMMAND, BlockType, HeaderKey


def render_block(kind: BlockType, header: Mapping[int, str], content: bytes | memoryview, footer: Mapping[int, str] | None = None) -> bytes:
    """Encode one block. `header` maps key numbers to text and is written in its own order."""
    head, tail = frame_block(kind, header, len(content), footer)
    return b"".join((head, content, tail))


def frame_block(
    kind: BlockType, header: Mapping[int, str], content_length: int, footer: Mapping[int, str] | None = None
) -> tuple[bytes, bytes]:
    """The bytes before and after a content of `content_length` bytes, for writing a block without copying its content."""
    inner = b"".join((struct.pack(">II", FORMAT_VERSION, kind), _texts(header), struct.pack(">Q", content_length)))
    end = _texts(footer or {})
    length = len(inner) + content_length + len(end) + 8
    return MAGIC + struct.pack(">Q", length) + inner, end + struct.pack(">Q", length + len(MAGIC))


def render_rollback(instant_time: str, target_instant_time: str) -> bytes:
    """The command block with which the rollback `instant_time` undoes what `target_instant_time` appended before it."""
    header: dict[int, str] = {
        HeaderKey.INSTANT_TIME: instant_time,
        HeaderKey.TARGET_INSTANT_TIME: target_instant_time,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    return render_block(BlockType.COMMAND, header, b"")


def _texts(texts: Mapping[int, str]) -> bytes:
    parts = [struct.pack(">I", len(texts))]
    for key, text in texts.items():
        encoded = text.encode("utf-8")
        parts += (struct.pack(">II", key, len(encoded)), encoded)
    return b"".join(parts)
