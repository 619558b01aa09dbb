"""Spark starts while dbt parses: what was begun is used, its errors are told once it is needed, and nothing is left where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse import environments
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments import early, existing, jvm, local

ROOT = Path(__file__).resolve().parents[3]
FAKE_JAVA = """#!/bin/bash
here=$(dirname "$0")
case "$*" in
*-version*) echo 'openjdk version "17.0.1"' >&2 ;;
*launcher.Main*) printf '\\0\\n'; printf '%s\\0' "$here/jvm" "$@" ;;
esac
"""
FAKE_JVM = """#!/bin/bash
printf '%s\\n' "$@" > "$0.arguments"
echo $$ > "$0.started"
exec sleep 60
"""
RUN = """
import os, sys, time
from dbt.cli.main import dbtRunner
from dbt.parser.manifest import ManifestLoader

def load(*_, **__):
    while not os.path.exists(sys.argv[2]):  # the test's own time limit ends it
        time.sleep(0.05)
    raise RuntimeError("cannot be parsed")

if len(sys.argv) > 2:
    ManifestLoader.load = load
for command in sys.argv[1].split(","):
    result = dbtRunner().invoke([command])
    print(command, "EXCEPTION", result.exception)
if len(sys.argv) > 2:
    with open(sys.argv[2]) as file:
        print("STILL THERE", os.path.exists(f"/proc/{file.read().strip()}"))
sys.exit(0 if result.success else 1)
"""
"""dbt; with a second argument it parses only once that file is there, and then fails."""


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A Java that says that it is one, and a JVM that starts and never answers."""
    folder = tmp_path / "java" / "bin"
    folder.mkdir(parents=True)
    for name, text in (("java", FAKE_JAVA), ("jvm", FAKE_JVM)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder / "jvm"


@pytest.fixture
def project(tmp_path: Path, java: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text("name: demo\nversion: '1.0'\nprofile: demo\nflags: {send_anonymous_usage_stats: false}\n")
    (folder / "profiles.yml").write_text(
        "demo: {target: dev, outputs: {dev: {type: lakehouse, schema: s, spark_config: {spark.driver.memory: 777m}}}}\n"
    )
    (folder / "models" / "one.sql").write_text("select 1 as id")
    return folder


def dbt(project: Path, java: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(java.parents[1]), "DBT_PROFILES_DIR": str(project)}
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_jvm_is_started_before_the_project_is_parsed_and_ends_with_a_process_that_cannot_parse_it(project: Path, java: Path) -> None:
    started = Path(f"{java}.started")
    answer = dbt(project, java, "run", str(started))
    assert "run EXCEPTION cannot be parsed" in answer.stdout, answer.stdout + answer.stderr
    assert not alive(int(started.read_text()))
    assert "STILL THERE False" in answer.stdout  # nor with the command, in a process that goes on
    assert "spark.driver.memory=777m" in Path(f"{java}.arguments").read_text()
    assert "Traceback" not in answer.stderr


def test_commands_that_run_no_sql_start_no_jvm(project: Path, java: Path) -> None:
    answer = dbt(project, java, "parse,ls,compile,seed")
    assert answer.stdout.count("EXCEPTION None") == 4, answer.stdout
    assert not Path(f"{java}.started").exists()


class Started:
    """Stands for a session whose context lives."""

    _sc = SimpleNamespace(_jsc=object())


def environment(monkeypatch: pytest.MonkeyPatch, start: Any) -> local.LocalEnvironment:
    monkeypatch.setattr(local.LocalEnvironment, "_start", start)
    return local.LocalEnvironment(LakehouseCredentials.from_dict({"schema": "s"}))


def test_a_session_that_was_started_early_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[str] = []

    def start(*_: Any) -> Started:
        starts.append(threading.current_thread().name)
        return Started()

    one = environment(monkeypatch, start)
    one.start_early()
    first = one.root_session()
    one.start_early()
    assert one.root_session() is first
    assert starts == ["lakehouse-early-start"]


def test_an_error_of_the_early_start_comes_with_the_first_session_and_the_next_one_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Any] = [DbtRuntimeError("no Java"), Started()]

    def start(*_: Any) -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    one = environment(monkeypatch, start)
    one.start_early()
    with pytest.raises(DbtRuntimeError, match="no Java"):
        one.root_session()
    assert isinstance(one.root_session(), Started)


def test_nothing_is_started_for_a_session_of_somebody_elses() -> None:
    existing.ExistingEnvironment(LakehouseCredentials.from_dict({"schema": "s", "method": "session"})).start_early()
    assert not [thread for thread in threading.enumerate() if thread.name == "lakehouse-early-start"]


def test_two_profiles_start_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    memory: list[str] = []

    def start(self: local.LocalEnvironment, *_: Any) -> Started:
        memory.append(self.credentials.spark_config["spark.driver.memory"])
        return Started()

    monkeypatch.setattr(local.LocalEnvironment, "_start", start)
    monkeypatch.setattr(environments, "_current", {})
    sessions = []
    for size in ("1g", "3g"):
        credentials = LakehouseCredentials.from_dict({"schema": "s", "spark_config": {"spark.driver.memory": size}})
        environments.environment_of(credentials).start_early()
        sessions.append(environments.environment_of(credentials).root_session())  # type: ignore[attr-defined]
    assert memory == ["1g", "3g"]
    assert sessions[0] is not sessions[1]


def test_a_fork_waits_for_the_start_and_its_child_ends_nothing() -> None:
    begun, release, given_up = threading.Event(), threading.Event(), []

    def start() -> str:
        begun.set()
        release.wait(30)
        return "up"

    one = early.EarlyStart(start, lambda: given_up.append(os.getpid()))
    begun.wait(30)
    threading.Timer(0.2, release.set).start()
    child = os.fork()
    if child == 0:
        early._give_up_all()
        os._exit(1 if given_up or not release.is_set() else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one.result() == "up"


def test_what_no_statement_asked_for_ends_with_the_command_and_the_next_one_starts_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[Started] = []
    stopped: list[bool] = []
    monkeypatch.setattr(local.Jvm, "stop", lambda _: stopped.append(True))

    def start(*_: Any) -> Started:
        starts.append(Started())
        return starts[-1]

    one = environment(monkeypatch, start)
    one.start_early()
    one.end_early()
    assert stopped
    assert not early._waiting
    assert one.root_session() is starts[1]
    one.end_early()  # asked for: it stays
    assert len(stopped) == 1
    assert one.root_session() is starts[1]


def test_a_start_that_a_statement_waits_for_is_neither_ended_nor_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, release, stopped = threading.Event(), threading.Event(), []
    monkeypatch.setattr(local.Jvm, "stop", lambda _: stopped.append(True))
    result = early.EarlyStart.result

    def told(self: Any) -> Any:
        asked.set()
        return result(self)

    def start(*_: Any) -> Started:
        release.wait(60)
        return Started()

    monkeypatch.setattr(early.EarlyStart, "result", told)
    one = environment(monkeypatch, start)
    one.start_early()
    statement = threading.Thread(target=one.root_session)
    statement.start()
    assert asked.wait(30)
    one.end_early()
    assert not release.is_set()
    release.set()
    statement.join(30)
    assert not stopped


def test_a_jvm_is_begun_without_a_fork_that_waits_for_another_and_does_not_end_with_ctrl_c(tmp_path: Path) -> None:
    release = threading.Event()
    other = early.EarlyStart(lambda: release.wait(60), release.set)
    one = jvm.Jvm()
    beginning = threading.Thread(target=one._begin, args=(["/bin/sh", "-c", "kill -INT $$; exit 7"], tmp_path / "answer"), daemon=True)
    beginning.start()
    beginning.join(20)
    waited = beginning.is_alive()
    release.set()
    other.result()
    beginning.join(20)
    assert not waited
    assert one.process.wait(30) == 7
    one.stop()
    assert one.process.stdin.closed


def test_spark_is_taken_from_where_pyspark_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    package = tmp_path / "pyspark"
    monkeypatch.setattr("importlib.util.find_spec", lambda _: SimpleNamespace(origin=str(package / "__init__.py")))
    assert jvm.spark_home() is None
    for home in (package, package / "spark-distribution"):
        (home / "bin").mkdir(parents=True)
        (home / "jars").mkdir()
        (home / "bin" / "spark-submit").write_text("")
        assert jvm.spark_home() == home
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert jvm.spark_home() is None


def _read_of_the_environment() -> tuple[str | None, str | None]:
    return os.environ.get("PYSPARK_GATEWAY_PORT"), os.environ.get("PATH")


def test_pyspark_is_told_of_the_jvm_without_a_change_of_the_environment_that_other_threads_read() -> None:
    function = jvm.told(_read_of_the_environment, {"PYSPARK_GATEWAY_PORT": "7"})
    before = dict(os.environ)
    assert function() == ("7", os.environ.get("PATH"))
    assert dict(os.environ) == before
    assert _read_of_the_environment()[0] is None
