"""The JVM of an embedded Spark, started as PySpark starts it, with two differences: PySpark is imported while it starts, and a start that
nobody needs any more can be taken back.

PySpark's `launch_gateway` gives its process away only when the JVM answers; until then nobody else could end it.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from dbt_common.exceptions import DbtRuntimeError

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
LAUNCHER_OPTIONS = "SPARK_LAUNCHER_OPTS"
_END_TIMEOUT_S = 5


def spark_home() -> Path | None:
    """The folder that PySpark takes Spark from, found without importing PySpark; None where only PySpark knows."""
    named = os.environ.get("SPARK_HOME")
    spec = None if named else importlib.util.find_spec("pyspark")
    home = Path(named) if named else Path(spec.origin).parent if spec and spec.origin else None
    return home if home and (home / "bin" / "spark-submit").is_file() and (home / "jars").is_dir() else None


class Jvm:
    """One JVM. `launch` is called once; `stop` may be called from any thread, at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self, conf: Mapping[str, str]) -> None:
        """Let the process's SparkContext have a JVM with these settings, unless it has one. Raises PySpark's error if none comes up."""
        home = spark_home()
        if home is None or os.name == "nt" or _PORT in os.environ or _has_gateway():
            return  # PySpark finds or starts it itself, with the first session
        folder = Path(tempfile.mkdtemp(prefix="dbt-lakehouse-jvm-"))
        try:
            answer = folder / "connection"
            self._begin([str(home / "bin" / "spark-submit"), *_arguments(conf)], answer)
            port, secret = self._answered(answer)
            self._connect(port, secret)
        except BaseException:
            self.stop()
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _begin(self, command: list[str], answer: Path) -> None:
        environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer)}
        with self._lock:
            if self._stopped:
                raise DbtRuntimeError("Spark is not started: the process ends.")
            # The JVM ends when its standard input does, and not with Ctrl-C: dbt cancels its queries first.
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, preexec_fn=_ignore_interrupts)

    def _answered(self, answer: Path) -> tuple[int, str]:
        """The port and the secret that the JVM writes down when it is up."""
        from pyspark.errors import PySparkRuntimeError

        assert self.process is not None
        while not answer.is_file():
            if self.process.poll() is not None:
                raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
            time.sleep(0.02)
        content = answer.read_bytes()
        port, length = struct.unpack_from("!ii", content)
        return port, content[8 : 8 + length].decode()

    def _connect(self, port: int, secret: str) -> None:
        from pyspark import SparkContext
        from pyspark.java_gateway import launch_gateway

        with SparkContext._lock:
            if SparkContext._gateway is not None:  # somebody else's was faster
                self.stop()
                return
            os.environ.update({_PORT: str(port), _SECRET: secret})
            try:
                gateway = launch_gateway()
            finally:
                del os.environ[_PORT], os.environ[_SECRET]
            gateway.proc = self.process
            SparkContext._ensure_initialized(gateway=gateway)

    def stop(self) -> None:
        """End the JVM, also one that is only starting, and let none be launched any more."""
        with self._lock:
            self._stopped = True
            process = self.process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _arguments(conf: Mapping[str, str]) -> list[str]:
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    return [*settings, *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))]


def _has_gateway() -> bool:
    """Whether this process has a JVM already; PySpark is not imported to find out."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._gateway is not None


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
