"""HFiles whose index has several levels, as HBase writes them for large files; the engine writes one level."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from lakehouse_engine.format.hfile.blocks import DATA, FILE_INFO, HEADER, INNER_INDEX, LEAF_INDEX, ROOT_INDEX, Compression, render_block
from lakehouse_engine.format.hfile.cells import Cells, encode_cells, key_bytes, stored_key
from lakehouse_engine.format.hfile.index import Index, render_root
from lakehouse_engine.format.hfile.trailer import Trailer, render_info, standard_info

Place = tuple[int, int, bytes]


def multi_level_hfile(cells: Cells, *, levels: int, fan_out: int, compression: Compression, per_block: int = 2) -> bytes:
    """The entries in blocks of `per_block`, below an index of so many levels whose lower blocks have `fan_out` entries.

    The index has a key between those of two blocks for the later one, as HBase's.
    """
    out = bytearray()

    def put(magic: bytes, content: bytes) -> tuple[int, int]:
        block = render_block(magic, content, compression)
        out.extend(block)
        return len(out) - len(block), len(block)

    places: list[Place] = []
    content_size = 0
    for start in range(0, len(cells), per_block):
        part = cells.slice(start, min(start + per_block, len(cells)))
        content = b"".join(encode_cells(part).to_pylist())
        content_size += HEADER.size + len(content)
        between = cells.keys[start - 1].as_py() + b"\0" if start else part.keys[0].as_py()
        places.append((*put(DATA, content), between))
    for level in range(levels - 1):
        magic = LEAF_INDEX if level == 0 else INNER_INDEX
        parts = [places[start : start + fan_out] for start in range(0, len(places), fan_out)]
        places = [(*put(magic, lower_index(part)), part[0][2]) for part in parts]
    load_on_open = len(out)
    put(ROOT_INDEX, render_root(Index.of(places), [stored_key(key) for _, _, key in places]))
    put(ROOT_INDEX, b"")
    keys, values = key_bytes(cells)
    info_offset, _ = put(FILE_INFO, render_info(standard_info(len(cells), keys, values, None)))
    trailer = Trailer(info_offset, load_on_open, len(places), 0, len(cells), compression, index_levels=levels, content_size=content_size)
    return bytes(out) + trailer.render()


def lower_index(places: Sequence[Place]) -> bytes:
    """The content of an index block below the root: count, where entries begin and end, entries."""
    entries = [struct.pack(">qi", offset, size) + stored_key(key) for offset, size, key in places]
    bounds = [sum(len(entry) for entry in entries[:number]) for number in range(len(entries) + 1)]
    return struct.pack(f">{len(bounds) + 1}i", len(entries), *bounds) + b"".join(entries)
