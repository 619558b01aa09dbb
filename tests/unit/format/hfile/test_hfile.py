"""HFiles: what is written is read, whole, by key, by prefix and by range; and damage is an error."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError, OptionError, UnsupportedTableError
from lakehouse_engine.format.hfile.blocks import Compression
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.index import hadoop_number, parse_hadoop_number
from lakehouse_engine.format.hfile.reader import BLOCKS, HFileReader, InMemory, open_hfile
from lakehouse_engine.format.hfile.trailer import KEY_VALUE_VERSION, MAX_MEMSTORE_TS, TRAILER_SIZE
from lakehouse_engine.format.hfile.writer import HFileWriter, render_hfile, sorted_cells
from tests.unit.format.hfile.multi_level import multi_level_hfile

Entries = dict[bytes, bytes]

KEYS = st.one_of(st.binary(max_size=6), st.text(alphabet="ab\u00e9\u4e00", max_size=5).map(str.encode))
ENTRIES = st.dictionaries(KEYS, st.binary(max_size=40), max_size=40)
SOME_ENTRIES = ENTRIES.filter(lambda entries: len(entries) > 2)
CODECS = st.sampled_from(list(Compression))


def cells_of(entries: Entries) -> Cells:
    return sorted_cells(pa.array(list(entries), pa.binary()), pa.array(list(entries.values()), pa.binary()))


def entries_of(cells: Cells) -> list[tuple[bytes, bytes]]:
    return list(zip(cells.keys.to_pylist(), cells.values.to_pylist(), strict=True))


def opened(data: bytes) -> HFileReader:
    return open_hfile(InMemory(data))


def one_block_each(count: int) -> Entries:
    """So many entries that every reader has blocks enough to walk side by side."""
    return {f"key-{number:05d}".encode(): bytes([number % 251]) * (number % 7) for number in range(count)}


@given(ENTRIES, CODECS, st.integers(1, 200))
def test_what_is_written_is_read_in_the_order_of_the_keys(entries: Entries, codec: Compression, block_size: int) -> None:
    reader = opened(render_hfile(cells_of(entries), compression=codec, block_size=block_size))
    assert entries_of(reader.read_all()) == sorted(entries.items())
    assert len(reader) == len(entries)


@given(ENTRIES, st.lists(KEYS, max_size=20), st.integers(1, 200))
def test_keys_that_are_there_are_found_and_others_between_them_are_not(entries: Entries, asked: list[bytes], block_size: int) -> None:
    reader = opened(render_hfile(cells_of(entries), block_size=block_size))
    found = reader.get(pa.array(asked, pa.binary()))
    assert entries_of(found) == sorted((key, entries[key]) for key in set(asked) & set(entries))
    assert entries_of(reader.get(pa.array(list(entries), pa.binary()))) == sorted(entries.items())


@given(ENTRIES, KEYS, st.one_of(st.none(), KEYS), st.integers(1, 200))
def test_a_range_has_the_keys_from_its_begin_to_below_its_end(entries: Entries, begin: bytes, end: bytes | None, block_size: int) -> None:
    found = opened(render_hfile(cells_of(entries), block_size=block_size)).range(begin, end)
    assert entries_of(found) == [(key, value) for key, value in sorted(entries.items()) if begin <= key and (end is None or key < end)]


@given(ENTRIES, st.lists(st.binary(max_size=3) | st.just(b"\xff") | st.just(b"\xff\xff"), max_size=5), st.integers(1, 200))
def test_prefixes_have_each_key_that_begins_with_one_of_them_once(entries: Entries, prefixes: list[bytes], block_size: int) -> None:
    found = opened(render_hfile(cells_of(entries), block_size=block_size)).prefixes(prefixes)
    assert entries_of(found) == sorted((key, value) for key, value in entries.items() if key.startswith(tuple(prefixes)))


@given(SOME_ENTRIES, st.integers(1, 4), st.integers(2, 3), CODECS, st.lists(KEYS, max_size=10))
def test_indexes_of_several_levels_are_followed(
    entries: Entries, levels: int, fan_out: int, codec: Compression, asked: list[bytes]
) -> None:
    reader = opened(multi_level_hfile(cells_of(entries), levels=levels, fan_out=fan_out, compression=codec))
    assert reader.trailer.index_levels == levels
    assert entries_of(reader.get(pa.array(asked, pa.binary()))) == sorted((key, entries[key]) for key in set(asked) & set(entries))
    assert entries_of(reader.read_all()) == sorted(entries.items())


@given(ENTRIES, st.integers(1, 60), st.integers(1, 200))
def test_appending_in_parts_makes_the_same_entries(entries: Entries, part: int, block_size: int) -> None:
    cells, out = cells_of(entries), bytearray()
    writer = HFileWriter(out.extend, block_size=block_size)
    for start in range(0, len(cells), part):
        writer.append(cells.slice(start, min(start + part, len(cells))))
    writer.close()
    assert entries_of(opened(bytes(out)).read_all()) == sorted(entries.items())


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 3000])
@pytest.mark.parametrize("codec", list(Compression))
def test_files_of_few_and_of_many_blocks_are_read_alike(count: int, codec: Compression) -> None:
    entries = one_block_each(count)
    reader = opened(render_hfile(cells_of(entries), block_size=1, compression=codec))
    assert reader.trailer.data_index_count == count
    assert entries_of(reader.read_all()) == list(entries.items())
    assert entries_of(reader.get(pa.array([b"key-00000", b"key-00000x"], pa.binary()))) == list(entries.items())[:1]


def test_blocks_have_no_more_than_64_kib_of_entries() -> None:
    entries = one_block_each(20_000)
    reader = opened(render_hfile(cells_of(entries), compression=Compression.NONE))
    sizes = [int(size) for size in reader._blocks().sizes]
    assert len(sizes) > 5
    assert max(sizes) <= 64 * 1024 + 33 + 5 * 4


def test_info_and_meta_blocks_are_kept() -> None:
    reader = opened(render_hfile(cells_of({b"a": b"1"}), info={b"schema": b"{}"}, meta={b"bloomFilter": b"text"}))
    assert reader.info[b"schema"] == b"{}"
    assert reader.info[KEY_VALUE_VERSION] == struct.pack(">i", 1)
    assert reader.info[MAX_MEMSTORE_TS] == bytes(8)
    assert reader.info[b"hfile.LASTKEY"] == b"\0\x01a\0\x7f\xff\xff\xff\xff\xff\xff\xff\x04"
    content = reader.meta_block(b"bloomFilter")
    assert content is not None
    assert bytes(content) == b"text"
    assert reader.meta_block(b"other") is None


def test_a_file_without_entries_has_the_averages_without_which_hudi_does_not_open_it() -> None:
    reader = opened(render_hfile(Cells.empty()))
    assert reader.info[b"hfile.AVG_KEY_LEN"] == reader.info[b"hfile.AVG_VALUE_LEN"] == bytes(4)
    assert b"hfile.LASTKEY" not in reader.info
    assert len(reader.range(b"", None)) == len(reader.prefixes([b""])) == 0


@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"]])
def test_keys_that_do_not_ascend_are_refused(keys: list[bytes]) -> None:
    with pytest.raises(FormatError, match="ascend"):
        render_hfile(Cells(pa.array(keys, pa.binary()), pa.array([b"", b""], pa.binary())))


def test_keys_that_do_not_ascend_from_one_append_to_the_next_are_refused() -> None:
    writer = HFileWriter(bytearray().extend)
    writer.append(cells_of({b"b": b""}))
    with pytest.raises(FormatError, match="ascend"):
        writer.append(cells_of({b"b": b""}))


def test_nulls_long_keys_and_large_blocks_are_refused() -> None:
    with pytest.raises(FormatError, match="null"):
        render_hfile(Cells(pa.array([b"a"], pa.binary()), pa.array([None], pa.binary())))
    with pytest.raises(FormatError, match="32768 bytes"):
        render_hfile(cells_of({b"x" * 32768: b""}))
    with pytest.raises(OptionError, match="65537"):
        render_hfile(Cells.empty(), block_size=65537)


@pytest.mark.parametrize("codec", list(Compression))
def test_a_flipped_or_lost_byte_is_an_error_or_changes_nothing_but_values(codec: Compression) -> None:
    entries = one_block_each(20)
    data = render_hfile(cells_of(entries), block_size=200, compression=codec)
    end = len(data) - 4096
    for at in range(0, end, 7):
        damaged = data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
        try:
            found = opened(damaged).read_all()
        except (FormatError, UnsupportedTableError):
            continue
        # gzip has a checksum; without it a byte of a key or value, of a header nobody uses, or of room for checksums may be another one.
        assert codec is Compression.NONE or entries_of(found) == list(entries.items())
        assert len(found) == len(entries)


@pytest.mark.parametrize("cut", [1, 100, 4095, 4096, 5000])
def test_a_file_that_is_cut_short_is_an_error(cut: int) -> None:
    data = render_hfile(cells_of(one_block_each(40)))
    with pytest.raises(FormatError):
        opened(data[:-cut]).read_all()
    with pytest.raises(FormatError):
        opened(data[cut:]).read_all()


def test_no_bit_of_the_trailer_takes_entries_away() -> None:
    entries = Cells(pa.array([b"a", b"b"]), pa.array([b"1", b"2"]))
    whole = render_hfile(entries)
    for place in range(len(whole) - TRAILER_SIZE, len(whole) - TRAILER_SIZE + 100):
        for bit in range(8):
            content = bytearray(whole)
            content[place] ^= 1 << bit
            try:
                found = open_hfile(InMemory(bytes(content))).read_all()
            except (FormatError, UnsupportedTableError):
                continue
            assert found == entries


def test_another_codec_is_refused_by_its_number() -> None:
    data = bytearray(render_hfile(Cells.empty()))
    place = bytes(data).rindex(b"\x60\x01")
    data[place + 1] = 3
    with pytest.raises(UnsupportedTableError, match="codec 3"):
        opened(bytes(data))


class Ranged:
    """A source that notes what is asked of it."""

    def __init__(self, data: bytes, identity: str | None) -> None:
        self.data, self.identity, self.asked = data, identity, list[tuple[int, int]]()

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> memoryview:
        self.asked.append((offset, length))
        return memoryview(self.data)[offset : offset + length]


def test_a_look_up_reads_one_block_and_only_the_first_time() -> None:
    entries = {f"{number:06d}".encode(): number.to_bytes(40, "big") for number in range(20_000)}
    source = Ranged(render_hfile(cells_of(entries), compression=Compression.NONE), "a look-up reads one block")
    reader = open_hfile(source)
    opening = len(source.asked)
    assert opening == 1
    for _ in range(2):
        assert len(reader.get(pa.array([b"000100", b"000101", b"absent"], pa.binary()))) == 2
    blocks = source.asked[opening:]
    assert len(blocks) == 1
    assert blocks[0][1] < 70_000
    assert BLOCKS.get((source.identity, blocks[0][0])) is not None
    assert len(reader.read_all()) == len(entries)
    # Neighbouring blocks are read together.
    assert len(source.asked) == opening + 2


@given(st.integers(0, 2**40))
def test_hadoop_numbers_are_read_as_written(value: int) -> None:
    encoded = hadoop_number(value)
    assert parse_hadoop_number(memoryview(encoded), 0) == (value, len(encoded))


@given(st.lists(KEYS, min_size=1, max_size=30, unique=True), st.lists(KEYS, max_size=30))
def test_the_block_of_a_key_is_the_last_that_begins_before_it(firsts: list[bytes], asked: list[bytes]) -> None:
    firsts.sort()
    entries = dict.fromkeys(firsts, b"")
    index = opened(render_hfile(cells_of(entries), block_size=1))._blocks()
    assert index.holding(pa.array(asked, pa.binary())).tolist() == [bisect_right(firsts, key) - 1 for key in asked]
    assert [bisect_left(firsts, key) for key in firsts] == index.holding(pa.array(firsts, pa.binary())).tolist()
