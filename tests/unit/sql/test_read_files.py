"""`read_files(...)`: what a call reads, its text, and what is refused by name."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.options.files import FilesRead
from lakehouse_engine.sql.binding.bind import Pin, bind
from lakehouse_engine.sql.binding.read_files import call_text, files_of
from lakehouse_engine.sql.binding.scan import scan

CALLS = {
    "read_files('/d/*.csv', format => 'csv', header => true, sep => ';')": FilesRead(
        "/d/*.csv", "csv", None, (("header", "true"), ("sep", ";"))
    ),
    "READ_FILES(path => '/d', FORMAT => 'JSON', schema => 'a int')": FilesRead("/d", "json", "a int"),
    "read_files('s3://b/k', format => 'parquet', `parquet.block.size` => 4, MergeSchema => false)": FilesRead(
        "s3://b/k", "parquet", None, (("mergeSchema", "false"), ("parquet.block.size", "4"))
    ),
    r"read_files('/it\'s \\ here', format => 'text')": FilesRead("/it's \\ here", "text"),
}
REFUSED = {
    "'/d'": "'format' is missing: one of csv",
    "format => 'csv'": "'path' is missing",
    "'/d', format => 'cvs'": "format 'cvs' is not one of csv, json, parquet, orc, text; did you mean 'csv'",
    "'/d', format => 'avro'": "format 'avro' is not one of",
    "'/d', format => 'csv', heder => true": "csv has no option 'heder'; did you mean 'header'",
    "'/d', format => 'json', header => true": "json has no option 'header'",
    "'/d', 'csv'": "2 arguments without names",
    "'/d', path => '/e', format => 'csv'": "arguments without names",
    "'/d', format => 'csv', sep => ';', SEP => ','": "SEP is given twice",
    "'/d', format => 'csv', schema => ''": "'schema' is a text",
    "concat('/d', x), format => 'csv'": "is no literal",
}


def read(call: str) -> FilesRead:
    (reference,) = scan(f"select * from {call}").references
    return files_of(reference.arguments or ())


@pytest.mark.parametrize(("call", "files"), CALLS.items())
def test_a_call_and_its_text_mean_the_same_files(call: str, files: FilesRead) -> None:
    assert read(call) == files
    assert read(call_text(files)) == files


@pytest.mark.parametrize(("arguments", "message"), REFUSED.items())
def test_what_a_call_does_not_have_is_refused_by_name(arguments: str, message: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=message):
        bind(f"select * from read_files({arguments})", lambda parts: False, lambda pin: "v")


def test_equal_calls_of_a_statement_are_one_reading_and_others_are_not() -> None:
    asked: list[Pin] = []

    def view_for(pin: Pin) -> str:
        asked.append(pin)
        return f"v{len(asked)}"

    call, other = "read_files('/d', format => 'csv')", "read_files('/d', format => 'csv', sep => ';')"
    bound = bind(f"select a.x from {call} a join {call} on true join {other} b where read_files.x = 1", lambda parts: False, view_for)
    assert bound.text == "select a.x from `v1` a join `v1` AS `read_files` on true join `v2` b where read_files.x = 1"
    assert [pin.files and pin.files.options for pin in asked] == [(), (("sep", ";"),)]


def test_other_table_functions_take_no_names() -> None:
    with pytest.raises(UnsupportedSqlError, match="is no table name"):
        bind("select * from hudi_read_optimized(name => 'a.b')", lambda parts: True, lambda pin: "v")
