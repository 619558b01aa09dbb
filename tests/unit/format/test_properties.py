from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import PropertiesError
from lakehouse_engine.format.properties import parse_properties, render_properties, table_checksum, verify_checksum

_TEXT = st.text(st.characters(codec="utf-16"), max_size=20)


@given(st.dictionaries(_TEXT, _TEXT), st.lists(_TEXT))
def test_any_properties_parse_back_after_rendering(properties: dict[str, str], comments: list[str]) -> None:
    assert parse_properties(render_properties(properties, comments=comments)) == properties


@given(st.binary(max_size=60) | st.text("\\u0aF=: \n#", max_size=40).map(str.encode))
def test_any_bytes_parse_or_raise_a_properties_error(data: bytes) -> None:
    try:
        parsed = parse_properties(data)
    except PropertiesError:
        return
    assert parse_properties(render_properties(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb : 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  1  \n", {"a": "1  "}),
        ("# no\n! no\n\n \t\na=1", {"a": "1"}),
        ("a=one, \\\n   two\\\n\tthree\nb=2", {"a": "one, twothree", "b": "2"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a\\=b\\:c\\ d=\\ e\\=", {"a=b:c d": " e="}),
        ("a=\\u00e9\\ud83d\\ude00", {"a": "é😀"}),
        ("a=\\q\\t", {"a": "q\t"}),
        ("a", {"a": ""}),
        ("=v", {"": "v"}),
        ("a==b", {"a": "=b"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=x\\\n# not a comment", {"a": "x# not a comment"}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode("latin-1")) == expected


def test_bytes_above_ascii_are_latin_1_as_in_java() -> None:
    assert parse_properties(b"a=\xe9") == {"a": "é"}


def test_text_is_rendered_as_hudi_renders_it() -> None:
    properties = {"a b": ' {"type":"x"} ', "é": "😀#!=\t"}
    assert render_properties(properties, comments=("Updated",)) == (
        b'#Updated\na\\ b=\\ {"type"\\:"x"} \n\\u00E9=\\uD83D\\uDE00\\#\\!\\=\\t\n'
    )


def test_a_torn_escape_is_refused() -> None:
    with pytest.raises(PropertiesError, match="torn"):
        parse_properties(b"a=\\u00")


@pytest.mark.parametrize(
    ("database", "table", "checksum"), [("default", "v6_trips_8i1u", "3843273058"), (None, "v8_trips_8i3u1d_metadata", "380169000")]
)
def test_checksums_are_those_that_hudi_wrote(database: str | None, table: str, checksum: str) -> None:
    properties = {"hoodie.table.name": table} | ({} if database is None else {"hoodie.database.name": database})
    assert table_checksum(properties) == checksum
    verify_checksum(properties)
    verify_checksum({**properties, "hoodie.table.checksum": checksum})


def test_a_wrong_checksum_is_refused_and_names_the_expected_one() -> None:
    with pytest.raises(PropertiesError, match="3843273058"):
        verify_checksum({"hoodie.database.name": "default", "hoodie.table.name": "v6_trips_8i1u", "hoodie.table.checksum": "3843"})
