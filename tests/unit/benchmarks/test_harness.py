"""The harness with contenders that are made up: what it does with wrong answers, failures and dead processes."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from benchmarks.cells import Cell, Peak, Status
from benchmarks.client import Answer, ContenderError, ContenderProcess
from benchmarks.contenders import CONTENDERS, ContenderSpec
from benchmarks.data import prepare
from benchmarks.environments import Unavailable, interpreter
from benchmarks.measure import ContenderRun, Plan
from benchmarks.memory import ProcessInfo, parse_stat, peak_of
from benchmarks.profiling import place
from benchmarks.tables import DataFiles, TableSpace, copy_table
from benchmarks.worker import answer


class CopyingProcess:
    """Stands in for a contender's process: tables are copies of the Parquet input; `wrong` replaces the source of a call."""

    def __init__(self, prepared, wrong=None):
        self._prepared = prepared
        self._wrong = wrong or {}
        self.calls = []

    def call(self, call, **arguments):
        self.calls.append(call)
        if call in self._wrong and isinstance(self._wrong[call], Exception):
            raise self._wrong[call]
        value = None
        if call == "bulk_insert":
            shutil.copytree(self._wrong.get(call, arguments["source"]), arguments["table"])
        elif call == "export":
            shutil.copytree(arguments["table"], arguments["target"])
        elif call == "scan":
            value = self._wrong.get(call, self._prepared.scans[arguments["query"]])
        return Answer(0.5 + len(self.calls), 2, value, Peak(10, 5, 3))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("bench"), 400)


def run_of(prepared, tmp_path, process, repeats=3):
    spec = ContenderSpec("made_up", "made up", "none", absent={Cell.BULK_INSERT_ARROW: "no Arrow"})
    return ContenderRun(spec, process, prepared, TableSpace(tmp_path / "tables", relocatable=True), Plan(1, repeats))


def test_a_right_load_has_one_time_for_each_repeat(prepared, tmp_path):
    process = CopyingProcess(prepared)
    item = run_of(prepared, tmp_path, process).measure(Cell.BULK_INSERT)
    assert (item.status, len(item.seconds), item.files_written, item.spark_jobs) == (Status.OK, 3, 1, 2)
    assert process.calls == ["bulk_insert"] * 4 + ["export"]


def test_a_table_with_other_rows_is_an_error_not_a_time(prepared, tmp_path):
    item = run_of(prepared, tmp_path, CopyingProcess(prepared, {"bulk_insert": prepared.source("updates-10")})).measure(Cell.BULK_INSERT)
    assert (item.status, item.seconds) == (Status.ERROR, ())
    assert "WrongResultError: the table has 40 rows" in item.note


def test_an_upsert_that_changes_nothing_is_an_error(prepared, tmp_path):
    assert run_of(prepared, tmp_path, CopyingProcess(prepared)).measure(Cell.UPSERT_1).status is Status.ERROR


def test_a_scan_with_another_answer_is_an_error(prepared, tmp_path):
    process = CopyingProcess(prepared, {"scan": [1, 2.0]})
    assert "the scan returned [1, 2.0]" in run_of(prepared, tmp_path, process).measure(Cell.SCAN_NARROW).note


def test_a_right_scan_has_times(prepared, tmp_path):
    assert run_of(prepared, tmp_path, CopyingProcess(prepared)).measure(Cell.SCAN_WIDE).status is Status.OK


def test_a_failing_contender_gives_an_error_cell(prepared, tmp_path):
    process = CopyingProcess(prepared, {"bulk_insert": ContenderError("KeyError: 'x'")})
    assert run_of(prepared, tmp_path, process).measure(Cell.BULK_INSERT).note == "ContenderError: KeyError: 'x'"


def test_a_cell_that_a_contender_lacks_says_why(prepared, tmp_path):
    item = run_of(prepared, tmp_path, CopyingProcess(prepared)).measure(Cell.BULK_INSERT_ARROW)
    assert (item.status, item.note) == (Status.ABSENT, "no Arrow")


class Busy:
    def jobs_started(self):
        return -1

    def scan(self, *, table, query):
        time.sleep(0.2)
        return [place(sys._getframe())]


def test_a_profile_names_only_stacks_that_pass_through_our_code(tmp_path):
    reply = answer(Busy(), "scan", {"table": "t", "query": "narrow"}, str(tmp_path / "profile.txt"))
    assert reply["value"] == [None]
    assert "samples" in (tmp_path / "profile.txt").read_text()


class Failing:
    def jobs_started(self):
        return -1

    def scan(self, *, table, query):
        raise ValueError(f"no {table}")


def test_the_worker_answers_an_exception_with_its_text_and_trace():
    reply = answer(Failing(), "scan", {"table": "t", "query": "narrow"})
    assert reply["error"] == "ValueError: no t"
    assert "Traceback" in reply["trace"]


def test_the_worker_refuses_calls_outside_the_protocol():
    with pytest.raises(ValueError, match="unknown call '__class__'"):
        answer(Failing(), "__class__", {})


def test_a_contender_process_that_dies_is_an_error_with_its_code(tmp_path):
    process = ContenderProcess("no_such_contender", sys.executable, tmp_path / "log")
    with process, pytest.raises(ContenderError, match="ended with code 1"):
        process.call("start", memory="1g", scratch=str(tmp_path), jars=[])
    assert b"no_such_contender" in (tmp_path / "log").read_bytes()


def test_restored_tables_share_data_files_and_own_the_rest(tmp_path):
    source = tmp_path / "source"
    (source / ".hoodie").mkdir(parents=True)
    (source / "a.parquet").write_bytes(b"data")
    (source / ".hoodie" / "hoodie.properties").write_text("x=1")
    copy_table(source, tmp_path / "copy")
    assert (tmp_path / "copy" / "a.parquet").samefile(source / "a.parquet")
    (tmp_path / "copy" / ".hoodie" / "hoodie.properties").write_text("x=2")
    assert (source / ".hoodie" / "hoodie.properties").read_text() == "x=1"


@pytest.mark.parametrize(("relocatable", "different"), [(True, True), (False, False)])
def test_live_tables_move_unless_the_contender_needs_them_in_place(tmp_path, relocatable, different):
    space = TableSpace(tmp_path / "space", relocatable=relocatable)
    first = space.fresh()
    first.mkdir()
    space.keep(first)
    assert (space.restored() != first) is different
    assert space.pristine.is_dir()


def test_added_files_are_those_that_were_not_there():
    before, after = DataFiles({"a": 1, "b": 2}), DataFiles({"b": 2, "c": 30, "d": 4})
    assert after.added_since(before) == (2, 34)


def test_process_lines_with_spaces_and_parentheses_in_the_name_parse():
    fields = " ".join(["S", "7", *["0"] * 19, "3"])
    assert parse_stat(f"12 (a (b) c) {fields}") == ProcessInfo(12, 7, "a (b) c", 3 * os.sysconf("SC_PAGE_SIZE"))


def test_peak_counts_the_tree_below_the_root_and_nothing_else():
    found = [
        ProcessInfo(1, 0, "init", 1000),
        ProcessInfo(5, 1, "python", 10),
        ProcessInfo(6, 5, "java", 100),
        ProcessInfo(7, 6, "python", 20),
    ]
    assert peak_of(found, 5) == Peak(130, 10, 100)
    assert peak_of(found, 99) == Peak()


def test_a_named_interpreter_that_is_missing_makes_the_contender_unavailable(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_HUDI_PYTHON", str(tmp_path / "python"))
    with pytest.raises(Unavailable, match="BENCH_HUDI_PYTHON"):
        interpreter("hudi")


def test_every_contender_has_a_module_and_only_known_needs():
    folder = Path(__file__).resolve().parents[3] / "benchmarks" / "contenders"
    for spec in CONTENDERS.values():
        assert (folder / f"{spec.module}.py").is_file()
        assert spec.needs is None or spec.needs in CONTENDERS
