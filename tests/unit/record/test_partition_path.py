from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakehouse_engine.errors import PartitionValueError
from lakehouse_engine.record.keys.partition_path import (
    DEFAULT_PARTITION,
    decode_partition_path,
    encode_partition_paths,
    escape_path_name,
    unescape_path_name,
)


def encode(values: list[str | None], *, hive_style: bool = True, url_encode: bool = False) -> list[str]:
    return encode_partition_paths([pa.array(values, pa.string())], ["p"], hive_style=hive_style, url_encode=url_encode).to_pylist()


def test_exactly_hives_characters_are_escaped() -> None:
    every = "".join(map(chr, range(128)))
    expected = "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(32)))
    assert {character for character in every if escape_path_name(character) != character} == set(expected)
    assert escape_path_name("a/b\n}ü日") == "a%2Fb%0A}ü日"


@pytest.mark.parametrize(
    ("hive_style", "url_encode", "expected"),
    [
        (True, True, ["p=a%2Fb", f"p={DEFAULT_PARTITION}", f"p={DEFAULT_PARTITION}", "p=x y"]),
        (True, False, ["p=a/b", f"p={DEFAULT_PARTITION}", f"p={DEFAULT_PARTITION}", "p=x y"]),
        (False, True, ["a%2Fb", DEFAULT_PARTITION, DEFAULT_PARTITION, "x y"]),
        (False, False, ["a/b", DEFAULT_PARTITION, DEFAULT_PARTITION, "x y"]),
    ],
)
def test_styles(hive_style: bool, url_encode: bool, expected: list[str]) -> None:
    assert encode(["a/b", None, "", "x y"], hive_style=hive_style, url_encode=url_encode) == expected


def test_fields_are_joined_in_order() -> None:
    columns = [pa.array(["a", None]), pa.array(["1", "2"])]
    assert encode_partition_paths(columns, ["x", "y"], hive_style=True, url_encode=False).to_pylist() == [
        "x=a/y=1",
        f"x={DEFAULT_PARTITION}/y=2",
    ]
    assert encode_partition_paths(columns, ["x", "y"], hive_style=False, url_encode=False).to_pylist() == ["a/1", f"{DEFAULT_PARTITION}/2"]


PLAIN_REFUSED = [
    "../../x",
    "..",
    ".",
    "/abs",
    "a/../b",
    "a/./b",
    "a//b",
    "a/",
    "a\\..\\b",
    "a\x00b",
    "a\nb",
    "a:b",
    ".hoodie",
    ".HOODIE/x",
    "x" * 256,
]


@pytest.mark.parametrize("value", PLAIN_REFUSED)
def test_plain_value_that_is_not_a_directory_is_refused(value: str) -> None:
    with pytest.raises(PartitionValueError, match="'p'") as caught:
        encode(["fine", value], hive_style=False)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", ["..", ".", "a\x00b", ".hoodie", ".hoodie_x", "ü" * 128, DEFAULT_PARTITION])
def test_encoded_value_that_is_not_a_directory_is_refused(value: str) -> None:
    with pytest.raises(PartitionValueError):
        encode([value], hive_style=False, url_encode=True)


def test_hive_style_makes_dots_and_hoodie_plain_values() -> None:
    assert encode(["..", ".", ".hoodie", "..a"]) == ["p=..", "p=.", "p=.hoodie", "p=..a"]
    with pytest.raises(PartitionValueError):
        encode(["a/.."])


def test_hoodie_is_refused_in_the_first_directory_only() -> None:
    columns = [pa.array(["a"]), pa.array([".hoodie"])]
    assert encode_partition_paths(columns, ["x", "y"], hive_style=False, url_encode=True).to_pylist() == ["a/.hoodie"]


@pytest.mark.parametrize(
    "value",
    [
        "../../x",
        "/abs",
        "%2e%2e%2f",
        "..\\",
        "trailing ",
        "tab\tx",
        "new\nline",
        "a=b",
        "100%",
        "%20",
        "a:b",
        "q?m#h",
        "🦆",
        "\u00e9",
        "e\u0301",
    ],
)
@pytest.mark.parametrize("hive_style", [True, False])
def test_encoded_value_is_one_directory_and_decodes_to_itself(value: str, hive_style: bool) -> None:
    [path] = encode([value], hive_style=hive_style, url_encode=True)
    assert "/" not in path
    assert decode_partition_path(path, ["p"], hive_style, True) == {"p": value}


@given(values=st.lists(st.text(min_size=1, max_size=20), min_size=2, max_size=2), hive_style=st.booleans())
def test_encoded_paths_decode_to_their_values_and_stay_below_the_table(values: list[str], hive_style: bool) -> None:
    assume(not any("\x00" in value for value in values))
    columns = [pa.array([value]) for value in values]
    try:
        [path] = encode_partition_paths(columns, ["x", "y"], hive_style=hive_style, url_encode=True).to_pylist()
    except PartitionValueError:
        assert not hive_style or any(len(escape_path_name(value).encode()) > 250 for value in values)
        return
    assert path.count("/") == 1
    assert decode_partition_path(path, ["x", "y"], hive_style, True) == dict(zip(["x", "y"], values, strict=True))


@given(st.text(max_size=30))
def test_unescape_inverts_escape(text: str) -> None:
    assert unescape_path_name(escape_path_name(text)) == text


def test_undecodable_percent_stands_for_itself() -> None:
    assert unescape_path_name("100%&%4&%zz%41") == "100%&%4&%zzA"


def test_decode_takes_levels_of_one_plain_field_and_of_hive_fields() -> None:
    assert decode_partition_path("2024/01/02", ["d"], False, False) == {"d": "2024/01/02"}
    assert decode_partition_path("x=a/b/y=c", ["x", "y"], True, False) == {"x": "a/b", "y": "c"}
    assert decode_partition_path(f"x={DEFAULT_PARTITION}/y=c", ["x", "y"], True, False) == {"x": None, "y": "c"}
    assert decode_partition_path("", [], True, False) == {}


@pytest.mark.parametrize(("path", "hive_style"), [("a/b/c", False), ("a", False), ("x=a", True), ("y=a/x=b", True), ("a/b", True)])
def test_path_without_the_fields_is_refused(path: str, hive_style: bool) -> None:
    with pytest.raises(PartitionValueError, match="is not made of"):
        decode_partition_path(path, ["x", "y"], hive_style, False)
