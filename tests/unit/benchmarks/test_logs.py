"""Cells of tables with logs: the batches, the file slices told from names, and what the harness does with a contender that cheats."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.cells import LOGGED_UPSERTS, SERIES_UPSERTS, Cell, Peak, Status
from benchmarks.checksum import checksum_of
from benchmarks.client import Answer
from benchmarks.contenders import CONTENDERS, ContenderSpec
from benchmarks.contenders.delta_dv import files_with_vectors
from benchmarks.contenders.file_groups import Slice, count_logs, newest_slices
from benchmarks.contenders.floor_mor import Merge, merge_all
from benchmarks.data import SCHEMA, prepare, read_tables
from benchmarks.measure import Plan
from benchmarks.measure_logs import LogsRun
from benchmarks.queries import NARROW, WIDE, plain
from benchmarks.series import batch_name, prepare_series
from benchmarks.suites import SUITES
from benchmarks.tables import DataFiles, TableSpace
from lakehouse_engine import Lakehouse


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare_series(prepare(tmp_path_factory.mktemp("bench"), 2_000))


def load(prepared, name: str) -> pa.Table:
    return pa.concat_tables(read_tables([str(path) for path in sorted((prepared.folder / name).glob("*.parquet"))]))


def merged(base: pa.Table, batch: pa.Table) -> pa.Table:
    return pa.concat_tables([base.filter(pc.invert(pc.is_in(base["id"], batch["id"].combine_chunks()))), batch])


def test_every_state_of_a_series_has_the_checksum_of_its_merged_rows(prepared):
    table = load(prepared, "base")
    for number in range(1, SERIES_UPSERTS + 1):
        table = merged(table, load(prepared, batch_name(number)))
        assert checksum_of([table], SCHEMA) == prepared.checksums[batch_name(number)]
        if number == LOGGED_UPSERTS:
            kinds = {"sum": pc.sum, "max": pc.max, "length": lambda column: pc.sum(pc.utf8_length(column))}
            for query, text in ((NARROW, "narrow"), (WIDE, "wide")):
                expected = [plain(kinds[kind](table[name]).as_py()) for kind, name in query]
                assert prepared.scans[f"{text} after {batch_name(number)}"] == expected


def test_later_batches_have_later_rows(prepared):
    times = [load(prepared, batch_name(number))["updated_at"] for number in range(1, 4)]
    assert pc.max(times[0]).as_py() < pc.min(times[1]).as_py() < pc.max(times[1]).as_py() < pc.min(times[2]).as_py()


class LoggingProcess:
    """Stands in for a contender: a table is a Parquet folder, its logs are batches in files that end in `.log.`."""

    def __init__(self, *, compacts=True, logs=True):
        self._compacts, self._logs = compacts, logs
        self.calls = []

    def call(self, call, **arguments):
        self.calls.append(call)
        return Answer(float(len(self.calls)), 2, getattr(self, f"_{call}")(**arguments), Peak(10, 5, 3))

    def _bulk_insert(self, *, table, source):
        shutil.copytree(source, table)

    def _upsert(self, *, table, source):
        (batch,) = Path(source).glob("*.parquet")
        if self._logs:
            shutil.copy(batch, Path(table) / f"{len(list(Path(table).iterdir())):03d}.log.parquet")
        else:
            self._replace(table, merged(self._rows(table), pq.read_table(batch)))

    def _compact(self, *, table):
        if self._compacts:
            self._replace(table, self._rows(table))

    def _deltas(self, *, table):
        return len(list(Path(table).glob("*.log.parquet")))

    def _scan(self, *, table, query):
        kinds = {"sum": pc.sum, "max": pc.max, "length": lambda column: pc.sum(pc.utf8_length(column))}
        rows = self._rows(table)
        return [plain(kinds[kind](rows[name]).as_py()) for kind, name in (NARROW if query == "narrow" else WIDE)]

    def _scan_read_optimized(self, *, table, query):
        return [plain(pc.sum(pq.read_table(f"{table}/part-00000.parquet")[name]).as_py()) for _, name in NARROW]

    def _export(self, *, table, target):
        Path(target).mkdir()
        pq.write_table(self._rows(table), f"{target}/all.parquet")

    def _rows(self, table):
        files = sorted(Path(table).glob("*.parquet"), key=lambda path: (".log." in path.name, path.name))
        rows = pq.read_table(files[0])
        for log in files[1:]:
            rows = merged(rows, pq.read_table(log))
        return rows

    def _replace(self, table, rows):
        for path in Path(table).iterdir():
            path.unlink()
        pq.write_table(rows, f"{table}/part-00000.parquet")


def run_of(prepared, tmp_path, process):
    spec = ContenderSpec("made_up", "made up", "none")
    return LogsRun(spec, process, prepared, TableSpace(tmp_path / "tables", relocatable=True), Plan(1, 2))


def test_a_series_has_one_time_for_each_upsert_and_its_growth_is_that_of_medians(prepared, tmp_path):
    item = run_of(prepared, tmp_path, LoggingProcess()).measure(Cell.UPSERT_SERIES)
    assert (item.status, len(item.seconds), item.files_written) == (Status.OK, SERIES_UPSERTS, SERIES_UPSERTS)
    assert item.growth == item.seconds[-2] / item.seconds[1]


@pytest.mark.parametrize("cell", [Cell.SNAPSHOT_NARROW_COLD, Cell.SNAPSHOT_NARROW, Cell.SNAPSHOT_WIDE, Cell.READ_OPTIMIZED])
def test_reads_of_a_logged_table_are_held_against_the_data(prepared, tmp_path, cell):
    item = run_of(prepared, tmp_path, LoggingProcess()).measure(cell)
    assert (item.status, item.note, len(item.seconds)) == (Status.OK, "", 2)


def test_a_compaction_has_times_when_nothing_is_left_to_apply(prepared, tmp_path):
    item = run_of(prepared, tmp_path, LoggingProcess()).measure(Cell.COMPACTION)
    assert (item.status, item.note, len(item.seconds)) == (Status.OK, "", 2)


def test_a_compaction_that_does_nothing_is_an_error_though_the_rows_are_right(prepared, tmp_path):
    item = run_of(prepared, tmp_path, LoggingProcess(compacts=False)).measure(Cell.COMPACTION)
    assert (item.status, item.seconds) == (Status.ERROR, ())
    assert "5 logs, delete files or deletion vectors are left" in item.note


def test_a_contender_that_logs_nothing_has_no_time_and_is_asked_once(prepared, tmp_path):
    process = LoggingProcess(logs=False)
    run = run_of(prepared, tmp_path, process)
    items = [run.measure(cell) for cell in (Cell.SNAPSHOT_NARROW, Cell.COMPACTION)]
    assert [item.status for item in items] == [Status.ERROR, Status.ERROR]
    assert all("left nothing beside the base files" in item.note for item in items)
    assert process.calls.count("upsert") == LOGGED_UPSERTS


def touch(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return paths


@pytest.mark.parametrize(
    ("base", "first", "second"),
    [
        # Version 6: logs bear the instant of their base file.
        ("f-0_1-0-1_20260102000000000.parquet", ".f-0_20260102000000000.log.1_0-1-1", ".f-0_20260102000000000.log.2_0-2-1"),
        # Version 8 and later: that of the commit that wrote them.
        ("f-0_1-0-1_20260102000000000.parquet", ".f-0_20260103000000000.log.1_0-1-1", ".f-0_20260104000000000.log.1_0-2-1"),
    ],
)
def test_slices_are_told_from_names_in_both_layouts(tmp_path, base, first, second):
    newest, one, two = touch(tmp_path, base, first, second)
    touch(tmp_path, f".{base}.crc", f".{first}.crc", f".{second}.crc")
    touch(tmp_path, "f-0_1-0-1_20260101000000000.parquet", ".f-0_20260101000000000.log.1_0-1-1", ".hoodie/metadata/.g-0_2026.log.1_0-0-0")
    assert newest_slices(str(tmp_path)) == [Slice(newest, (one, two))]
    assert count_logs(str(tmp_path)) == 2
    touch(tmp_path, "f-0_2-0-1_20260105000000000.parquet")
    assert count_logs(str(tmp_path)) == 0


def test_deletion_vectors_count_until_their_file_is_removed_or_added_without_one(tmp_path):
    log = tmp_path / "_delta_log"
    log.mkdir()
    commits: list[list[dict[str, Any]]] = [
        [{"add": {"path": "a", "deletionVector": None}}, {"add": {"path": "b"}}],
        [{"remove": {"path": "a"}}, {"add": {"path": "a", "deletionVector": {"cardinality": 1}}}],
        [{"remove": {"path": "b"}}, {"add": {"path": "b", "deletionVector": {"cardinality": 1}}}],
        [{"remove": {"path": "a"}}, {"add": {"path": "c"}}],
    ]
    for number, actions in enumerate(commits):
        (log / f"{number:020d}.json").write_text("\n".join(json.dumps(action) for action in actions))
    assert files_with_vectors(str(tmp_path)) == {"b"}


def test_the_floor_of_a_compaction_merges_our_base_files_and_logs(prepared, tmp_path):
    table = Lakehouse(str(tmp_path / "lake")).create_table(
        "bench.orders", schema=SCHEMA, record_key=["id"], ordering_fields=["updated_at"], table_type="mor"
    )
    table.bulk_insert(load(prepared, "base"))
    for number in range(1, LOGGED_UPSERTS + 1):
        table.upsert(load(prepared, batch_name(number)))
    slices = newest_slices(table.path)
    assert [len(one.logs) for one in slices] == [LOGGED_UPSERTS]
    targets = [tmp_path / f"merged-{number}.parquet" for number in range(len(slices))]
    merge_all([Merge(str(one.base), tuple(map(str, one.logs)), str(target)) for one, target in zip(slices, targets, strict=True)])
    assert checksum_of(read_tables([str(target) for target in targets]), SCHEMA) == prepared.checksums[batch_name(LOGGED_UPSERTS)]


def test_logs_and_deletion_vectors_are_data_files_and_the_tables_own_metadata_is_not(tmp_path):
    touch(tmp_path, "a.parquet", ".f_2026.log.1_0", "d/v.puffin", "v.bin", "v.bin.crc", ".hoodie/metadata/.g_2026.log.1_0", "x.json")
    assert sorted(DataFiles.of(tmp_path).sizes) == [".f_2026.log.1_0", "a.parquet", "d/v.puffin", "v.bin"]


def test_contenders_of_a_suite_are_known_and_come_after_those_they_start_from():
    for suite in SUITES.values():
        for position, name in enumerate(suite.contenders):
            assert CONTENDERS[name].needs in (None, *suite.contenders[:position])
        assert suite.reference in suite.contenders


def test_a_reduced_suite_keeps_its_order_and_only_what_it_has():
    reduced = SUITES["mor"].reduced(["hudi_mor", "ours_mor", "delta_rs"], ["compaction", "upsert_1", "bulk_insert"])
    assert reduced.contenders == ("ours_mor", "hudi_mor")
    assert reduced.cells == (Cell.UPSERT_1, Cell.COMPACTION)
    assert reduced.needs_series
    assert not SUITES["cow"].needs_series
