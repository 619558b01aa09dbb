from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FileNameError
from lakehouse_engine.format.file_names import (
    MarkerType,
    is_base_file_name,
    is_log_file_name,
    marker_folder,
    marker_path,
    new_file_id,
    parse_base_file,
    parse_log_file,
    parse_marker_path,
    write_token,
)
from lakehouse_engine.model.files import BaseFile, LogFile

_FILE_IDS = st.one_of(st.uuids().map(lambda value: f"{value}-0"), st.from_regex(r"[A-Za-z0-9-]{1,40}", fullmatch=True))
_NUMBERS = st.integers(0, 10**9)
_TOKENS = st.builds(write_token, _NUMBERS, _NUMBERS, _NUMBERS)
_INSTANTS = st.from_regex(r"[0-9]{14}([0-9]{3})?", fullmatch=True)
_PARTITIONS = st.sampled_from(["", "2024/01/02", "part=%2F", "größe=ä b"])
_BASE_FILES = st.builds(BaseFile, _PARTITIONS, _FILE_IDS, _TOKENS, _INSTANTS, st.sampled_from([".parquet", ".orc", ".hfile"]), _NUMBERS)
_LOG_FILES = st.one_of(
    st.builds(LogFile, _PARTITIONS, _FILE_IDS, _INSTANTS, _NUMBERS, _TOKENS, st.sampled_from(["", ".cdc"]), _NUMBERS),
    st.builds(LogFile, _PARTITIONS, _FILE_IDS, _INSTANTS, _NUMBERS, st.none(), st.just(""), _NUMBERS),
)


@given(_BASE_FILES)
def test_base_file_names_parse_back(file: BaseFile) -> None:
    assert parse_base_file(file.partition_path, file.name, file.size) == file
    assert is_base_file_name(file.name)
    assert not is_log_file_name(file.name)


@given(_LOG_FILES)
def test_log_file_names_parse_back(file: LogFile) -> None:
    assert parse_log_file(file.partition_path, file.name, file.size) == file
    assert is_log_file_name(file.name)
    assert not is_base_file_name(file.name)


@given(_INSTANTS, st.one_of(_BASE_FILES, _LOG_FILES), st.sampled_from(list(MarkerType)))
def test_markers_parse_back(instant_time: str, file: BaseFile | LogFile, kind: MarkerType) -> None:
    assert parse_marker_path(instant_time, marker_path(instant_time, file.path, kind)) == (file.path, kind)


@given(st.text(max_size=60))
def test_any_name_that_parses_prints_back(name: str) -> None:
    for parse, matches in ((parse_base_file, is_base_file_name), (parse_log_file, is_log_file_name)):
        if matches(name):
            assert parse("", name).name == name
        else:
            with pytest.raises(FileNameError):
                parse("", name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "data.parquet",
        "part-00000-uuid-c000.snappy.parquet",
        ".f-0_0-1-2_20240101000000000.parquet",
        "f-0_0-1-2_20240101000000000.parquet.crc",
        "f-0_0-1-2_20240101000000000.parquet\n",
        "f_0_0-1-2_20240101000000000.parquet",
        "f-0_0-1-2_20240101000000000.csv",
        "f-0_0-1-٢_20240101000000000.parquet",
        "a/f-0_0-1-2_20240101000000000.parquet",
        ".hoodie_partition_metadata",
        ".f-0_20240101000000000.log.01_0-1-2",
        ".f-0_20240101000000000.log.1_0-1-2.cdc.crc",
        ".commits_.archive.1_1-0-1",
    ],
)
def test_other_names_are_neither_base_nor_log_files(name: str) -> None:
    assert not is_base_file_name(name)
    assert not is_log_file_name(name)


@pytest.mark.parametrize(
    "path",
    [
        ".hoodie/.temp/1/p/f.parquet",
        ".hoodie/.temp/1/p/f.parquet.marker.DELETE",
        ".hoodie/.temp/2/p/f.parquet.marker.CREATE",
        ".hoodie/.temp/1/.marker.CREATE",
        "p/f.parquet.marker.CREATE",
        ".hoodie/.temp/1/MARKERS.type",
    ],
)
def test_other_paths_are_no_markers_of_an_instant(path: str) -> None:
    with pytest.raises(FileNameError):
        parse_marker_path("1", path)


def test_a_marker_stands_where_hudi_puts_it() -> None:
    file = "part=a/f-0_0-1-2_20240101000000000.parquet"
    assert marker_path("20240101000000000", file, MarkerType.MERGE) == f".hoodie/.temp/20240101000000000/{file}.marker.MERGE"
    assert marker_folder("20240101000000000") == ".hoodie/.temp/20240101000000000"


def test_new_file_ids_differ_and_fit_the_grammar() -> None:
    of = [(time, partition, number) for time in ("1", "2") for partition in ("", "p", "p/1", "1/p") for number in range(12)]
    ids = {new_file_id(*one) for one in of}
    assert len(ids) == len(of)
    assert all(parse_base_file("", BaseFile("", one, "0-0-0", "20240101000000000").name).file_id == one for one in ids)


def test_two_attempts_of_one_task_have_one_file_id() -> None:
    assert new_file_id("20240101000000000", "p", 3) == new_file_id("20240101000000000", "p", 3)


def test_a_write_token_takes_no_negative_number() -> None:
    assert write_token(0, 161, 223) == "0-161-223"
    with pytest.raises(FileNameError):
        write_token(0, -1, 0)
