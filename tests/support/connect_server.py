"""A Spark Connect server on this machine: a process of its own, which takes every Python worker and folder of its own with it.

LAKEHOUSE_CONNECT   1: the suites that ask `WANTED` run over sessions of such a server
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from tests.support.processes import HOST, SPARK_HOME, children, die_with_parent, free_port, stop, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import SparkConnectClient

WANTED = os.environ.get("LAKEHOUSE_CONNECT") == "1"
_NOT_THERE = "not over Spark Connect"
ROOT = Path(__file__).resolve().parents[2]
CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.connect.grpc.binding.address": HOST,
}
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


def classic_only(reason: str) -> pytest.MarkDecorator:
    """For a test of what only a session with a SparkContext has."""
    return pytest.mark.skipif(WANTED, reason=f"{_NOT_THERE}: {reason}")


def is_classic_only(mark: pytest.Mark) -> bool:
    """Whether `classic_only` made it."""
    return mark.name == "skipif" and str(mark.kwargs.get("reason", "")).startswith(_NOT_THERE)


@dataclass
class ConnectServer:
    """A context manager: at its end the server and all that it started are gone. Should this process be killed, they die with it.

    `environment` is what the server's own differs in from that of a server which has this project's Python.
    """

    folder: Path
    conf: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"sc://{HOST}:{self.port}"

    def __enter__(self) -> ConnectServer:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        settings = {**CONF, **self.conf, "spark.connect.grpc.binding.port": str(self.port), "spark.local.dir": str(self.folder)}
        settings["spark.sql.warehouse.dir"] = str(self.folder / "spark-warehouse")
        given = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_", "SPARK_"))}
        own = {"SPARK_HOME": str(SPARK_HOME), "SPARK_CONNECT_MODE": "0", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-submit"), "--class", _CLASS, *given, "spark-internal"],
                env={**kept, **own, "TMPDIR": str(self.folder), **self.environment},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        try:
            wait_for("the Connect server", self._answers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for client in self._clients():
            _end(client)
        if self.process is not None:
            stop(self.process)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the Connect server ended: {self.log()}"
        with socket.socket() as asked:
            return asked.connect_ex((HOST, self.port)) == 0

    def log(self) -> str:
        """The end of what the server said."""
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def end_workers(self) -> None:
        """End the daemons of Python workers, of which Spark leaves one of 50 MB for each session that has ended (SPARK-54055). No task may
        be running; a session that asks for one again gets another.
        """
        assert self.process is not None
        for one, command in children(self.process.pid):
            if "pyspark.daemon" in command:
                os.kill(one, signal.SIGTERM)

    def session(self, **conf: str) -> SparkSession:
        """A new session; the process is one for Spark Connect from here on."""
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.client.retries import DefaultPolicy

        found: SparkSession = SparkSession.builder.remote(self.url).create()
        # What is asked in the background goes on when the server has ended: not for ten minutes.
        found.client.set_retry_policies([DefaultPolicy(max_retries=3)])
        for key, value in conf.items():
            found.conf.set(key, value)
        return found

    def _clients(self) -> list[SparkConnectClient]:
        """What speaks to this server in this process, whoever made it (a test by `newSession`, dbt): PySpark keeps them all."""
        from pyspark.sql.connect.client import SparkConnectClient

        ours = f"{HOST}:{self.port}"
        return [one for one in gc.get_objects() if type(one) is SparkConnectClient and one._builder.endpoint == ours]  # type: ignore[attr-defined]


def _end(client: SparkConnectClient) -> None:
    """Have a session go while its server is there: at its end the process would ask a server that has gone for ten minutes a session."""
    if not client.is_closed:
        client.set_retry_policies([])
        with contextlib.suppress(PySparkException):  # a server that a test ended
            client.release_session()
        client.close()
