"""Compactions that copy data blocks of the base file: entries are those without copying, and the file is as readers of HFiles need it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError, UnsupportedTableError
from lakehouse_engine.format.hfile.blocks import DATA, HEADER, Compression, parse_block
from lakehouse_engine.format.hfile.cells import Cells, decode_cells, key_bytes, stored_key
from lakehouse_engine.format.hfile.reader import HFileReader, InMemory, open_hfile
from lakehouse_engine.format.hfile.trailer import AVERAGE_KEY, AVERAGE_VALUE, LAST_KEY
from lakehouse_engine.format.hfile.writer import HFileWriter, render_hfile, sorted_cells
from lakehouse_engine.format.metadata_table.merging import Layer, Merging, merged
from lakehouse_engine.format.metadata_table.payload import encode_payloads
from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.metadata_table import compaction
from lakehouse_engine.metadata_table.compaction import compact_into
from lakehouse_engine.metadata_table.groups import LayerSource
from lakehouse_engine.model.table_version import TableVersion
from tests.support.followed_tables import index_cells, many_keys
from tests.unit.format.hfile.multi_level import multi_level_hfile
from tests.unit.format.metadata_table.payloads import Payload, payloads, written

SCHEMA = record_schema(TableVersion.NINE)
BLOCK = 1024
NO_KEYS = pa.array([], pa.binary())


def same(error: FormatError) -> FormatError:
    return error


def source(data: bytes, schema: str = SCHEMA) -> LayerSource:
    return LayerSource(open_hfile(InMemory(data)), schema, NO_KEYS, same)


def deletion(keys: Sequence[bytes]) -> LayerSource:
    return LayerSource(None, "", pa.array(keys, pa.binary()), same)


def index(keys: Sequence[str], file_id: str = "old") -> Cells:
    return index_cells(dict.fromkeys(keys, file_id), SCHEMA)


def put(keys: Sequence[str], file_id: str = "new") -> LayerSource:
    return source(render_hfile(index(keys, file_id)))


def key(number: int) -> str:
    return f"key{number:05d}"


def stored(keys: Sequence[str], **options: Compression) -> bytes:
    return render_hfile(index(keys), block_size=BLOCK, **options)


def compacted(sources: Sequence[LayerSource], merging: Merging = Merging.NEWEST, *, copies: bool = True, block: int = BLOCK) -> bytes:
    out = bytearray()
    writer = HFileWriter(out.extend, block_size=block)
    with pytest.MonkeyPatch.context() as patch:
        if not copies:
            patch.setattr(HFileWriter, "can_copy", lambda writer, reader: False)
        compact_into(writer, sources, merging, SCHEMA)
    writer.close()
    return bytes(out)


def opened(data: bytes) -> HFileReader:
    return open_hfile(InMemory(data))


def bodies(data: bytes) -> list[bytes]:
    return [bytes(block.stored.body) for block in opened(data).blocks(b"", None)]


def sizes(data: bytes) -> list[int]:
    """Bytes of entries of each block."""
    return [len(block.stored.content) for block in opened(data).blocks(b"", None)]


def check_form(data: bytes, block: int = BLOCK) -> None:
    """Everything that headers, index, file info and trailer say of the entries is so."""
    reader, at, previous, content_size, last = opened(data), 0, -1, 0, b""
    found: list[Cells] = []
    offsets, room, keys = reader._blocks().offsets.tolist(), reader._blocks().sizes.tolist(), reader._blocks().keys.to_pylist()
    for offset, size, first in zip(offsets, room, keys, strict=True):
        assert offset == at
        magic, on_disk, unpacked, before, kind, chunk, whole = HEADER.unpack_from(data, at)
        block_read = parse_block(memoryview(data), at, Compression.GZIP, DATA)
        assert (magic, unpacked, before, kind, chunk) == (DATA, len(block_read.content), previous, 0, 16 * 1024)
        assert whole == HEADER.size + len(block_read.body)
        assert size == block_read.length == HEADER.size + on_disk == whole + 4 * -(-whole // chunk)
        assert data[at + whole : at + size] == bytes(size - whole)
        cells = decode_cells([block_read.content])
        assert last < first <= cells.keys[0].as_py() or (not last and first == b"")
        last = cells.keys[-1].as_py()
        found.append(cells)
        content_size += HEADER.size + unpacked
        previous, at = at, at + size
    whole_cells = Cells.concat(found)
    assert len(whole_cells) == len(reader) == reader.trailer.entries
    assert reader.trailer.data_index_count == len(found)
    assert reader.trailer.content_size == content_size + (0 if found else HEADER.size)
    assert reader.trailer.last_data_block == max(previous, 0)
    assert reader.info.get(LAST_KEY) == (stored_key(last) if found else None)
    for name, total in zip((AVERAGE_KEY, AVERAGE_VALUE), key_bytes(whole_cells), strict=True):
        assert abs(int.from_bytes(reader.info[name], "big") - total / max(1, len(reader))) <= 2
    assert max(sizes(data), default=0) <= block


NUMBERS = st.sets(st.integers(0, 400), max_size=30)


@given(
    st.sets(st.integers(10, 390), min_size=1, max_size=300),
    st.lists(st.tuples(st.booleans(), NUMBERS), max_size=4),
    st.lists(st.tuples(st.booleans(), st.sampled_from([-1, 0, 1]), st.integers(0, 40)), max_size=4),
    st.integers(600, 20_000),
    st.booleans(),
)
def test_copied_blocks_leave_the_entries_what_they_are_without(
    base: set[int], layers: list[tuple[bool, set[int]]], edges: list[tuple[bool, int, int]], piece: int, several_levels: bool
) -> None:
    """`edges` are keys beside the first key of a block."""
    cells = index([key(number) for number in sorted(base)])
    options = {"levels": 2, "fan_out": 4, "compression": Compression.GZIP, "per_block": 7}
    first = multi_level_hfile(cells, **options) if several_levels else render_hfile(cells, block_size=BLOCK)  # type: ignore[arg-type]
    starts = [int(start.removeprefix(b"key")[:5]) for start in opened(first).starts()[0].to_pylist()]
    layers += [(deletes, {starts[number % len(starts)] + beside}) for deletes, beside, number in edges]
    sources = [source(first)]
    for number, (deletes, keys) in enumerate(layers):
        names = [key(one) for one in sorted(keys)]
        sources.append(deletion([name.encode() for name in names]) if deletes else put(names, f"file-{number}"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "_PIECE", piece)
        data, plain = compacted(sources), compacted(sources, copies=False)
    check_form(data)
    expected, reader = opened(plain).read_all(), opened(data)
    assert reader.read_all() == expected
    asked = pa.array([key(number).encode() for number in range(0, 400, 3)], pa.binary())
    assert reader.get(asked) == opened(plain).get(asked)
    assert reader.prefixes([b"key000", b"key0039"]) == opened(plain).prefixes([b"key000", b"key0039"])
    assert reader.range(b"key00100", b"key00200") == opened(plain).range(b"key00100", b"key00200")


def test_only_the_blocks_of_logged_keys_are_encoded() -> None:
    base = stored([key(number) for number in range(0, 2000, 2)])
    starts = opened(base).starts()[0].to_pylist()
    before = bodies(base)
    data = compacted([source(base), put(["key", "zzz"]), deletion([starts[10]])])
    after = bodies(data)
    assert after[1:10] == before[1:10]
    kept = [body for body in before if body in after]
    assert kept == before[1:10] + before[11:-1]
    check_form(data)
    assert bodies(compacted([source(base)])) == before


@given(
    st.sampled_from(list(Merging)),
    st.lists(payloads(), min_size=1, max_size=12),
    st.sets(st.integers(0, 90), max_size=4),
    st.sets(st.integers(0, 90), max_size=4),
)
def test_records_of_each_merging_are_those_without_copying(
    merging: Merging, rows: list[Payload], puts: set[int], deleted: set[int]
) -> None:
    """Among them are tombstones in the base file. Keys that are put are new ones."""

    def cells(numbers: Sequence[int]) -> Cells:
        values = [written(TableVersion.NINE, rows[number % len(rows)]) for number in numbers]
        return sorted_cells(pa.array([key(number) for number in numbers], pa.string()), pa.array(values, pa.binary()))

    base = render_hfile(cells(range(0, 90, 2)), block_size=200)
    log = render_hfile(cells([number for number in sorted(puts) if number % 2]))
    sources = [source(base), deletion([key(number).encode() for number in sorted(deleted)]), source(log)]
    results = [compacted(sources, merging, copies=copies, block=200) for copies in (True, False)]
    copied, plain = (merged([Layer(opened(data).read_all(), SCHEMA)], merging) for data in results)
    assert copied.keys == plain.keys
    assert encode_payloads(SCHEMA, copied.payloads) == encode_payloads(SCHEMA, plain.payloads)


def test_fifty_compactions_leave_blocks_of_a_good_size() -> None:
    dice, keys = random.Random(3), {key(number * 7) for number in range(1500)}
    data = stored(sorted(keys))
    for _ in range(50):
        puts, gone = {key(dice.randrange(10_500)) for _ in range(12)}, dice.sample(sorted(keys), 12)
        keys = (keys - set(gone)) | puts
        data = compacted([source(data), deletion([one.encode() for one in gone]), put(sorted(puts))])
        check_form(data)
    assert opened(data).read_all().keys.to_pylist() == sorted(one.encode() for one in keys)
    assert np.mean(sizes(data)) > BLOCK / 2
    assert min(sizes(data)) > BLOCK / 8


def test_keys_in_order_fill_their_blocks() -> None:
    data = stored([key(0)])
    for number in range(1, 300, 3):
        data = compacted([source(data), put([key(number), key(number + 1), key(number + 2)])])
    assert np.mean(sizes(data)) > BLOCK * 0.6


def test_blocks_that_lose_their_keys_are_joined() -> None:
    keys = [key(number) for number in range(1000)]
    data = stored(keys)
    count = len(sizes(data))
    for number in range(9):
        data = compacted([source(data), deletion([one.encode() for one in keys[number::10]])])
        check_form(data)
    assert len(opened(data)) == 100
    assert len(sizes(data)) < count / 4


def test_a_file_of_another_form_is_encoded_as_a_whole() -> None:
    keys = [key(number) for number in range(300)]
    gzip, plain = stored(keys), stored(keys, compression=Compression.NONE)
    for base in (source(plain), source(gzip, record_schema(TableVersion.SIX))):
        writer = HFileWriter(bytearray().extend, block_size=BLOCK)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(HFileWriter, "copy", None)
            if base.schema == SCHEMA:
                compact_into(writer, [base, put(["a"])], Merging.NEWEST, SCHEMA)
                assert writer.entries == 301
            else:
                compact_into(writer, [source(stored(keys), SCHEMA)], Merging.NEWEST, record_schema(TableVersion.SIX))
                assert writer.entries == 300


def test_a_wrong_count_in_the_trailer_copies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    base = source(stored([key(number) for number in range(300)]))
    assert base.reader is not None
    for wrong in (0, 1, 299 - 16, 300 + 16, 2**40):
        trailer = base.reader.trailer
        changed = type(trailer)(**{name: wrong if name == "entries" else getattr(trailer, name) for name in trailer.__slots__})
        reader = HFileReader(base.reader.source, changed, base.reader.info, base.reader.meta, base.reader._root, base.reader._tail)
        assert not HFileWriter(bytearray().extend).can_copy(reader)
        data = compacted([LayerSource(reader, SCHEMA, NO_KEYS, same), put(["a"])])
        check_form(data)
        assert len(opened(data)) == 301


def test_a_changed_byte_of_a_copied_block_is_an_error_or_changes_nothing() -> None:
    base = stored([key(number) for number in range(200)])
    end = opened(base).trailer.load_on_open
    expected = opened(compacted([source(base), put(["a"])])).read_all()
    seen = 0
    for place in range(0, end, 3):
        damaged = base[:place] + bytes([base[place] ^ (1 << place % 8)]) + base[place + 1 :]
        try:
            data = compacted([source(damaged), put(["a"])])
        except (FormatError, UnsupportedTableError):
            seen += 1
            continue
        check_form(data)
        assert opened(data).read_all() == expected
    assert seen > end / 3 * 0.8


class Counted(InMemory):
    """Notes what is read."""

    asked: list[int] = []  # noqa: RUF012

    def read(self, offset: int, length: int) -> memoryview:
        self.asked.append(length)
        return InMemory.read(self, offset, length)


def test_many_blocks_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_PIECE", 64 * 1024)
    base = stored(many_keys(20_000))
    data = Counted(base)
    data.asked.clear()
    reader = open_hfile(data)
    assert len(reader.starts()[1]) > 1000
    result = compacted([LayerSource(reader, SCHEMA, NO_KEYS, same), put([many_keys(20_000)[5]])])
    assert len(opened(result)) == 20_000
    assert max(data.asked[1:]) < 80 * 1024
    assert len(data.asked) < 3 + len(base) / (64 * 1024)


def test_first_keys_of_blocks_ascend() -> None:
    base = stored([key(number) for number in range(0, 2000, 2)])
    starts = opened(compacted([source(base), put([key(number) for number in range(1, 2000, 200)])])).starts()[0].to_pylist()
    assert all(one < other for one, other in pairwise(starts))
