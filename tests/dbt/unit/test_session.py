"""A thread session: cancelling reaches work that starts its Spark job only after the signal; whose Spark session is used again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments.base import ClassicEnvironment
from dbt.adapters.lakehouse.work import session as module


class FakeEnvironment:
    def __init__(self) -> None:
        self.interrupts = 0

    def session(self, allow_files: bool = True) -> object:
        return object()

    def tag(self, *_: Any) -> None: ...

    def untag(self, *_: Any) -> None: ...

    def interrupt(self, *_: Any) -> None:
        self.interrupts += 1


@pytest.fixture
def environment(monkeypatch) -> FakeEnvironment:
    fake = FakeEnvironment()
    monkeypatch.setattr(module, "environment_of", lambda _: fake)
    return fake


def test_cancel_interrupts_until_the_work_ends_and_refuses_more(environment, tmp_path) -> None:
    session = module.ThreadSession(LakehouseCredentials.from_dict({"schema": "s", "warehouse": str(tmp_path)}))
    release = threading.Event()
    worker = threading.Thread(target=lambda: session.work(lambda _: release.wait(10)))
    worker.start()
    while not session._working.is_set():
        time.sleep(0.01)
    session.cancel()
    time.sleep(1.2)
    assert environment.interrupts >= 2
    release.set()
    worker.join(5)
    with pytest.raises(DbtRuntimeError, match="cancelled"):
        session.run("select 1")


def test_cancelling_an_idle_session_starts_nothing(environment, tmp_path) -> None:
    session = module.ThreadSession(LakehouseCredentials.from_dict({"schema": "s", "warehouse": str(tmp_path)}))
    session.cancel()
    assert environment.interrupts == 0


class Sessions(FakeEnvironment):
    """Counts the sessions that it makes, and keeps those that are given back."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Any] = []
        self.idle: list[Any] = []

    def session(self, allow_files: bool = True) -> Any:
        if not self.idle:
            self.made.append(SimpleNamespace(sql=lambda text: text))
            return self.made[-1]
        return self.idle.pop()

    def release(self, session: Any, *, as_new: bool, allow_files: bool = True) -> None:
        if as_new:
            self.idle.append(session)


@pytest.fixture
def sessions(monkeypatch) -> Sessions:
    fake = Sessions()
    monkeypatch.setattr(module, "environment_of", lambda _: fake)
    monkeypatch.setattr(Warehouse, "sql", lambda self, text, bindings=None: text)
    monkeypatch.setattr(Warehouse, "pinned", lambda self: self)
    return fake


@pytest.fixture
def node(sessions, tmp_path) -> Callable[[Callable[[module.ThreadSession], Any]], None]:
    """What dbt does for a node: a connection is opened, used and closed."""

    def run(use: Callable[[module.ThreadSession], Any]) -> None:
        session = module.ThreadSession(LakehouseCredentials.from_dict({"schema": "s", "warehouse": str(tmp_path)}))
        use(session)
        session.close()

    return run


@pytest.mark.parametrize(
    "sql", ["select 1", "/* dbt */ -- q\n(select 1)", "with a as (select 1) select * from a", "insert into t select 1", "MERGE into t"]
)
def test_a_session_that_ran_queries_and_writes_is_used_again(sessions, node, sql) -> None:
    for _ in range(3):
        node(lambda session: session.run(sql))
    assert len(sessions.made) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "set spark.sql.ansi.enabled=false",
        "create temporary view v as select 1",
        "-- select\ncreate temporary function f as 'x.Y'",
        "declare variable x int",
        "use other",
        "begin set x = 1; end",
        "execute immediate 'set x = 1'",
        "cache table t",
        "",
    ],
)
def test_a_session_that_a_statement_may_have_changed_is_not_used_again(sessions, node, sql) -> None:
    node(lambda session: session.run(sql))
    node(lambda session: session.run("select 1"))
    assert len(sessions.made) == 2


def test_nor_is_one_that_a_python_model_had(sessions, node) -> None:
    node(lambda session: session.keep_view("v", "", lambda house: object()))
    node(lambda session: session.run("select 1"))
    assert len(sessions.made) == 2


def test_nor_one_in_which_something_failed_or_was_cancelled(sessions, node) -> None:
    def failing(session: module.ThreadSession) -> None:
        with pytest.raises(ZeroDivisionError):
            session.work(lambda _: 1 / 0)

    def cancelled(session: module.ThreadSession) -> None:
        session.run("select 1")
        session.cancel()

    node(failing)
    node(cancelled)
    node(lambda session: session.run("select 1"))
    assert len(sessions.made) == 3


def test_connections_that_are_open_at_once_have_sessions_of_their_own(sessions, tmp_path) -> None:
    credentials = LakehouseCredentials.from_dict({"schema": "s", "warehouse": str(tmp_path)})
    both = [module.ThreadSession(credentials) for _ in range(2)]
    assert both[0].warehouse.spark is not both[1].warehouse.spark


class Root:
    def __init__(self, context: object) -> None:
        self.sparkContext, self.conf = context, SimpleNamespace(set=lambda key, value: None)

    def newSession(self) -> Root:
        return Root(self.sparkContext)


class OneRoot(ClassicEnvironment):
    root = Root(object())

    def start_early(self) -> None: ...
    def end_early(self) -> None: ...
    def before_python(self) -> None: ...
    def describe(self) -> dict[str, str]:
        return {}

    def root_session(self) -> Any:
        return self.root


def test_a_session_is_given_to_one_connection_at_a_time_and_only_to_one_with_the_same_rule_on_files(tmp_path) -> None:
    environment = OneRoot(LakehouseCredentials.from_dict({"schema": "s", "warehouse": str(tmp_path)}))
    first = environment.session(True)
    environment.release(first, as_new=True)
    assert environment.session(False) is not first
    assert environment.session(True) is first
    assert environment.session(True) is not first


def test_a_session_of_a_spark_that_has_ended_is_not_used_again(tmp_path) -> None:
    environment = OneRoot(LakehouseCredentials.from_dict({"schema": "s", "warehouse": str(tmp_path)}))
    first = environment.session()
    environment.release(first, as_new=True)
    environment.root = Root(object())
    assert environment.session() is not first
