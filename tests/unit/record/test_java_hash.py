"""`String.hashCode` of whole columns, against its definition."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.record.keys import java_hash
from lakehouse_engine.record.keys.java_hash import java_string_hash


def reference(text: str) -> int:
    units = text.encode("utf-16-le")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (low | high << 8)) & 0xFFFFFFFF
    return value


TEXTS = st.one_of(st.text(max_size=40), st.text(alphabet="abc019:-", max_size=12), st.text(alphabet="é名🙂\U0010ffff", max_size=6))


@given(st.lists(TEXTS, max_size=60), st.integers(0, 5))
def test_every_text_hashes_as_java_does(texts: list[str], skipped: int) -> None:
    array = pa.array(texts, pa.string()).slice(skipped)
    assert java_string_hash(array).tolist() == [reference(text) for text in texts[skipped:]]


def test_values_that_java_prints() -> None:
    # jshell: "".hashCode(), "a".hashCode(), "hello world".hashCode(), "\uD83D\uDE00".hashCode(), "ключ".hashCode()
    hashes = java_string_hash(pa.array(["", "a", "hello world", "😀", "ключ"], pa.string()))
    assert hashes.view("int32").tolist() == [0, 97, 1794106052, 1772899, 33309882]


@pytest.mark.parametrize("limits", [(3, 1 << 22), (65_536, 7), (1, 1)])
def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int]) -> None:
    texts = ["", "x" * 20, "", "é" * 9, "abc", "", "🙂", "", "tail"]
    monkeypatch.setattr(java_hash, "_CHUNK", limits[0])
    monkeypatch.setattr(java_hash, "_CHUNK_BYTES", limits[1])
    assert java_string_hash(pa.array(texts, pa.string())).tolist() == [reference(text) for text in texts]


def test_long_and_dictionary_types() -> None:
    texts = ["k1", "k2", "k1"]
    for array in (pa.array(texts, pa.large_string()), pa.array(texts).dictionary_encode()):
        assert java_string_hash(array).tolist() == [reference(text) for text in texts]
    assert java_string_hash(pa.array([], pa.string())).tolist() == []
