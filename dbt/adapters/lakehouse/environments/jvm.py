"""Starts the JVM of an embedded Spark as PySpark does, with two differences: PySpark is imported meanwhile, and an unneeded start can be
stopped.

PySpark's `launch_gateway` returns the process only once the JVM answers, so until then nothing could stop it.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.environments.jvm_output import JvmOutput
from lakehouse_engine.api.loading import PYSPARK, load_module

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_NO_INTERRUPTS = """trap '' INT; exec "$0" "$@\""""
_END_TIMEOUT_S = 5
_LAST_ON_PATH = "SPARK_DIST_CLASSPATH"
_LAUNCHER, _SHORT_LIVED = "SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Spark's launch script runs a JVM of its own to print the command line: for a fifth of a second, optimised compilation does not pay."""


def spark_home() -> Path | None:
    """Folder of PySpark's Spark, found without importing PySpark; None if only PySpark can find it."""
    named = os.environ.get("SPARK_HOME")
    if named:
        return _checked_home(Path(named))
    spec = importlib.util.find_spec("pyspark")
    if not spec or not spec.origin:
        return None
    package = Path(spec.origin).parent
    return _checked_home(package / "spark-distribution") or _checked_home(package)  # PySpark's own order


def _checked_home(home: Path) -> Path | None:
    return home if (home / "bin" / "spark-submit").is_file() and (home / "jars").is_dir() else None


class Jvm:
    """One JVM. `launch` is called once; `stop` may be called from any thread at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self.process: subprocess.Popen[bytes] | None = None
        self.output: JvmOutput | None = None
        """Output of the JVM, if it was started here."""

    def launch(self, conf: Mapping[str, str], jars: Sequence[str] = ()) -> None:
        """Start a JVM with these settings for the process's SparkContext, unless it has one. Raises PySpark's error on failure.

        `jars` come last on the class path: a class archive that was made without them still fits, and nothing is copied.
        """
        home = spark_home()
        if home is None or os.name == "nt" or _PORT in os.environ or _has_gateway():
            return  # PySpark finds or starts it with the first session
        folder = Path(tempfile.mkdtemp(prefix="dbt-lakehouse-jvm-"))
        try:
            answer = folder / "connection"
            self._begin([str(home / "bin" / "spark-submit"), *_arguments(conf)], answer, jars)
            port, secret = self._answered(answer)
            self._connect(port, secret)
        except BaseException:
            self.stop()
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _begin(self, command: list[str], answer: Path, jars: Sequence[str] = ()) -> None:
        environment = {_LAUNCHER: _SHORT_LIVED, **os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer)}
        if jars:
            environment[_LAST_ON_PATH] = os.pathsep.join([*filter(None, [os.environ.get(_LAST_ON_PATH)]), *jars])
        with self._lock:
            if self._stopped:
                raise DbtRuntimeError("Spark is not started: the process ends.")
            # The JVM ends when its standard input closes, and ignores Ctrl-C, because dbt cancels its queries first. A shell sets that up:
            # between fork and exec, Python may hang in a process with threads.
            shell = ["/bin/sh", "-c", _NO_INTERRUPTS, *command]
            self.process = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
            assert self.process.stdout is not None
            self.output = JvmOutput(self.process.stdout)

    def _answered(self, answer: Path) -> tuple[int, str]:
        """Port and secret that the JVM writes once it is up."""
        load_module(PYSPARK)
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
            if SparkContext._gateway is not None:  # another thread was faster
                self.stop()
                return
            gateway = told(launch_gateway, {_PORT: str(port), _SECRET: secret})()
            gateway.proc = self.process
            SparkContext._ensure_initialized(gateway=gateway)

    def stop(self) -> None:
        """End the JVM, even while it starts, and allow no further launch."""
        with self._lock:
            self._stopped = True
            process = self.process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def told(function: Callable[[], Any], variables: Mapping[str, str]) -> Callable[[], Any]:
    """Run another module's function that reads `os.environ` with additional variables. The process's own environment stays unchanged: other
    threads and the processes that they start copy it at this moment.
    """
    seen = types.SimpleNamespace(**{**vars(os), "environ": {**os.environ, **variables}})
    code: Any = function
    return types.FunctionType(code.__code__, {**code.__globals__, "os": seen}, code.__name__, code.__defaults__, code.__closure__)


def _arguments(conf: Mapping[str, str]) -> list[str]:
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    return [*settings, *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))]


def _has_gateway() -> bool:
    """True if this process already has a JVM. Does not import PySpark."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._gateway is not None


def forget_ended() -> None:
    """Let PySpark start a new JVM after its own has ended; otherwise it keeps calling the dead one."""
    if not _has_gateway():
        return
    load_module(PYSPARK)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    with SparkContext._lock:
        gateway, context = SparkContext._gateway, SparkContext._active_spark_context
        if gateway is None or gateway.proc is None or gateway.proc.poll() is None:
            return
        if context is not None:
            context._jsc = None  # the JVM needs no message
            context.stop()
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        SQLContext._instantiatedContext = None
        gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
