"""A thread session: cancelling reaches work that starts its Spark job only after the signal."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse import session as module
from dbt.adapters.lakehouse.credentials import LakehouseCredentials


class FakeEnvironment:
    def __init__(self) -> None:
        self.interrupts = 0

    def session(self) -> object:
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
