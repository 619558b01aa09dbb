from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import CorruptFileError, FileNameError, FormatError, MetadataError
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.format.v8.commits import decode_commit_metadata
from lakehouse_engine.format.v8.history import (
    VERSION_FILE,
    HistoryEntry,
    HistoryFile,
    current_manifest,
    files_to_merge,
    manifest_name,
    manifest_number,
    merge_histories,
    parse_history_file,
    parse_manifest,
    read_history,
    read_history_times,
    render_history,
    render_manifest,
    render_version,
)
from lakehouse_engine.format.v8.table_format import FormatV8
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import (
    HoodieCleanerPlan,
    HoodieCleanMetadata,
    HoodieCompactionPlan,
    HoodieRollbackMetadata,
)
from lakehouse_engine.model.write_stats import WriteOperationType
from tests.unit.format.v8.tables import TABLES, files_of, listed_sizes, needs_fixtures

_FOLDER = ".hoodie/timeline/history/"
_ARCHIVED = [name for name in TABLES if name.endswith("_archive")]


def history_of(name: str) -> dict[str, bytes]:
    return {path.removeprefix(_FOLDER): data for path, data in files_of(name).items() if path.startswith(_FOLDER)}


def current_files(folder: dict[str, bytes]) -> list[tuple[HistoryFile, bytes]]:
    number = current_manifest(folder[VERSION_FILE], folder)
    assert number is not None
    return [(file, folder[file.name]) for file in parse_manifest(folder[manifest_name(number)])]


def instant(time: int, action: Action = Action.COMMIT) -> Instant:
    requested = f"202401010000{time:05d}"
    return Instant(requested, action, State.COMPLETED, f"{int(requested) + 500}")


def entries(*times: int) -> list[HistoryEntry]:
    return [HistoryEntry(instant(time), b"metadata %d" % time, None if time % 2 else b"plan") for time in times]


@needs_fixtures
@pytest.mark.parametrize("name", _ARCHIVED)
def test_the_history_of_hudi_is_read(name: str) -> None:
    folder = history_of(name)
    sizes = {path.removeprefix(_FOLDER): size for path, size in listed_sizes(name).items() if path.startswith(_FOLDER)}
    assert {path: len(data) for path, data in folder.items()} == sizes
    files = current_files(folder)
    assert {file.name for file, _ in files} == {path for path in folder if path.endswith(".parquet")}
    for file, data in files:
        times = read_history_times(data, file)
        assert (times[0].requested_time, times[-1].requested_time, file.level) == (file.first, file.last, 0)
        assert all(one.is_completed and one.completed_at and one.completed_at > one.requested_time for one in times)
        assert [entry.instant for entry in read_history(data, file)] == times


@needs_fixtures
@pytest.mark.parametrize("name", _ARCHIVED)
def test_the_history_and_the_active_timeline_are_the_whole_of_it(name: str) -> None:
    archived = [one for file, data in current_files(history_of(name)) for one in read_history_times(data, file)]
    table_format = FormatV8()
    paths = [path.rpartition("/") for path in files_of(name)]
    active = [one for folder, _, last in paths if folder == ".hoodie/timeline" and (one := table_format.parse_file_name(last))]
    assert max(one.requested_time for one in archived) < min(one.requested_time for one in active)
    assert {str(one.action) for one in archived} >= {"clean", "rollback", "replacecommit"}


@needs_fixtures
@pytest.mark.parametrize("name", _ARCHIVED)
def test_archived_instants_hold_their_files(name: str) -> None:
    outcomes = {Action.CLEAN: HoodieCleanMetadata, Action.ROLLBACK: HoodieRollbackMetadata}
    planned = {Action.CLEAN: HoodieCleanerPlan, Action.COMMIT: HoodieCompactionPlan}
    for file, data in current_files(history_of(name)):
        for entry in read_history(data, file):
            action = entry.instant.action
            assert entry.metadata is not None
            if action in outcomes:
                assert decode_plan(outcomes[action], entry.metadata)
            else:
                assert decode_commit_metadata(entry.metadata).operation_type is not None
            if entry.plan is not None and action is Action.REPLACE_COMMIT:
                assert decode_commit_metadata(entry.plan).operation_type is WriteOperationType.INSERT_OVERWRITE
            elif entry.plan is not None:
                assert decode_plan(planned[action], entry.plan)


@needs_fixtures
@pytest.mark.parametrize("name", _ARCHIVED)
def test_manifests_and_versions_print_back(name: str) -> None:
    folder = history_of(name)
    manifests = {path: data for path, data in folder.items() if manifest_number(path) is not None}
    assert len(manifests) == 3
    for data in manifests.values():
        assert render_manifest(parse_manifest(data)) == data
    number = current_manifest(folder[VERSION_FILE], folder)
    assert number == max(found for path in manifests if (found := manifest_number(path)) is not None)
    assert render_version(number) == folder[VERSION_FILE]


@needs_fixtures
@pytest.mark.parametrize("name", _ARCHIVED)
def test_what_is_written_has_the_columns_and_schema_of_hudi(name: str) -> None:
    for file, data in current_files(history_of(name)):
        written, again = render_history(list(read_history(data, file)))
        assert written.name == file.name
        theirs, ours = pq.ParquetFile(io.BytesIO(data)), pq.ParquetFile(io.BytesIO(again))
        assert ours.read().equals(theirs.read())
        assert [str(ours.schema.column(i)) for i in range(6)] == [str(theirs.schema.column(i)) for i in range(6)]
        texts = ours.metadata.metadata
        assert {key: texts[key] for key in theirs.metadata.metadata} == theirs.metadata.metadata
        assert b"ARROW:schema" not in texts
        assert ours.metadata.row_group(0).column(3).compression == theirs.metadata.row_group(0).column(3).compression


def test_entries_are_read_as_they_were_written() -> None:
    file, data = render_history(entries(1, 2, 3))
    assert file == parse_history_file("20240101000000001_20240101000000003_0.parquet", len(data))
    read = list(read_history(data, file))
    assert read == entries(1, 2, 3)
    assert [entry.instant.completed_at for entry in read] == [entry.instant.completed_at for entry in entries(1, 2, 3)]


@pytest.mark.parametrize("wrong", [[], entries(2, 1), [HistoryEntry(Instant("20240101000000000", Action.COMMIT, State.INFLIGHT))]])
def test_only_completed_instants_in_order_are_written(wrong: list[HistoryEntry]) -> None:
    with pytest.raises(FormatError):
        render_history(wrong)


def test_an_instant_without_a_completion_time_completed_when_it_was_requested() -> None:
    bare = Instant("20240101000000000", Action.COMMIT, State.COMPLETED)
    file, data = render_history([HistoryEntry(bare)])
    assert read_history_times(data, file)[0].completed_at == bare.requested_time


def test_files_are_merged_in_order_of_their_instants() -> None:
    sources = [render_history(entries(5, 6)), render_history(entries(1, 2)), render_history(entries(3, 7))]
    file, data = merge_histories(sources)
    assert (file.name, file.size) == ("20240101000000001_20240101000000007_1.parquet", len(data))
    assert list(read_history(data, file)) == entries(1, 2, 3, 5, 6, 7)
    with pytest.raises(FormatError):
        merge_histories([])


def test_the_oldest_files_of_the_lowest_full_level_are_merged() -> None:
    zero = [HistoryFile(f"{time:017d}", f"{time + 1:017d}", 0, 10) for time in range(0, 8, 2)]
    one = [HistoryFile(f"{time:017d}", f"{time + 1:017d}", 1, 10) for time in range(100, 106, 2)]
    assert files_to_merge([*reversed(zero), *one], batch=3, most_bytes=1000) == tuple(zero[:3])
    assert files_to_merge([*zero[:2], *one], batch=3, most_bytes=1000) == tuple(one)
    assert files_to_merge(zero[:2], batch=3, most_bytes=1000) == ()
    assert files_to_merge(zero, batch=4, most_bytes=15) == tuple(zero[:2])
    assert files_to_merge(zero, batch=4, most_bytes=9) == ()
    large = HistoryFile(zero[0].first, zero[0].last, 0, 2000)
    assert files_to_merge([large, *zero[1:]], batch=4, most_bytes=1000) == tuple(zero[1:])


def test_without_a_version_the_newest_manifest_counts() -> None:
    names = ["manifest_9", "manifest_10", "manifest_x", "_version_", "1_2_0.parquet"]
    assert current_manifest(None, names) == 10
    assert current_manifest(b"", names) == 10
    assert current_manifest(b"9", names) == 9
    assert current_manifest(None, ["archived"]) is None
    with pytest.raises(MetadataError, match="no number"):
        current_manifest(b"9\n", names)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"files": 1}', b'{"files": [{"fileName": "1_2_0.parquet"}]}', b'{"files": [{"a'])
def test_a_damaged_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataError):
        parse_manifest(data)


def test_a_manifest_lists_files_of_the_history_only() -> None:
    data = json.dumps({"files": [{"fileName": "1_2.parquet", "fileLen": 1}]}).encode()
    with pytest.raises(FileNameError, match=r"1_2\.parquet"):
        parse_manifest(data)


def test_a_flipped_byte_is_found_or_changes_nothing() -> None:
    file, data = render_history(entries(1, 2))
    unseen = 0
    for place in range(len(data)):
        damaged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        read = read_if_whole(damaged, file)
        assert read is None or read == entries(1, 2)
        unseen += read is not None
    assert unseen < 20


def read_if_whole(data: bytes, file: HistoryFile) -> list[HistoryEntry] | None:
    try:
        return list(read_history(data, file))
    except CorruptFileError:
        return None


def test_a_file_that_was_cut_is_refused() -> None:
    file, data = render_history(entries(1))
    with pytest.raises(CorruptFileError, match="its manifest says"):
        read_history_times(data[:-1], file)


@pytest.mark.parametrize(("column", "value"), [(2, "compact"), (2, None), (0, None), (0, "noon"), (1, "later")])
def test_what_is_no_instant_is_refused(column: int, value: str | None) -> None:
    file, data = render_history(entries(1))
    table = pq.read_table(io.BytesIO(data)).replace_schema_metadata(None)
    sink = io.BytesIO()
    pq.write_table(table.set_column(column, table.column_names[column], pa.array([value], pa.string())), sink)
    with pytest.raises(CorruptFileError, match="no instant"):
        read_history_times(sink.getvalue(), HistoryFile(file.first, file.last, 0, len(sink.getvalue())))
