"""Embedded Spark in this process, started on first need."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge import warehouse
from dbt.adapters.lakehouse.config.stores import READ_FILES, REDACTION, SECRET, coordinates, jars_in
from dbt.adapters.lakehouse.environments.archive import archive_for, archive_options, build_at_exit, folder_of, tell_refused
from dbt.adapters.lakehouse.environments.base import ClassicEnvironment, quiet_python_loggers
from dbt.adapters.lakehouse.environments.early import EarlyStart
from dbt.adapters.lakehouse.environments.first_session import first_session, register_ml
from dbt.adapters.lakehouse.environments.jvm import Jvm, forget_ended, spark_home
from dbt.adapters.lakehouse.environments.start_errors import start_error, warn_of_typos

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.lakehouse.credentials import LakehouseCredentials

MINIMUM_JAVA = 17
S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_VERSION = re.compile(r'version "(\d+)[^"]*"')
_REMOTE = (
    "method 'local' starts a Spark of its own, but this process is one for Spark Connect (SPARK_REMOTE or"
    " SPARK_CONNECT_MODE_ENABLED is set):"
    " use method 'connect' with the server's url, or unset the variable."
)
_NO_JAVA = (
    f"Spark needs Java {MINIMUM_JAVA} or newer and none was found. "
    f"Install one (for example 'apt-get install openjdk-{MINIMUM_JAVA}-jre-headless' "
    f"or 'brew install openjdk@{MINIMUM_JAVA}'), then put it on PATH or set JAVA_HOME."
)


class LocalEnvironment(ClassicEnvironment):
    """`method: local`. One SparkContext per process; a second profile with other settings shares the running one."""

    _session: SparkSession | None = None
    _early: EarlyStart[SparkSession] | None = None
    _loading: EarlyStart[object] | None = None
    _without_ml = False

    def start_early(self) -> None:
        with self._lock:
            if self._early is None and not self._runs():
                jvm = Jvm()
                self._early = EarlyStart(lambda: self._start(jvm), jvm.stop)
                # Beside the JVM, which takes longer: a session needs the engine anyway.
                self._loading = self._loading or EarlyStart(warehouse.load, lambda: None)

    def end_early(self) -> None:
        if not self._lock.acquire(blocking=False):
            return  # a statement is waiting for it
        try:
            early, self._early = self._early, None
            loading, self._loading = self._loading, None
            if early is not None:
                early.give_up()
                forget_ended()
            if loading is not None:
                loading.give_up()
        finally:
            self._lock.release()

    def root_session(self) -> SparkSession:
        with self._lock:
            early, self._early = self._early, None
            if early is not None:
                self._session = early.result()
            if self._session is None or not self._runs():
                self._session = self._start(Jvm())
            loading, self._loading = self._loading, None
            if loading is not None:
                loading.result()
            return self._session

    def _runs(self) -> bool:
        return self._session is not None and self._session._sc._jsc is not None

    def _start(self, jvm: Jvm) -> SparkSession:
        if any(name in os.environ for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")):
            raise DbtRuntimeError(_REMOTE)
        java = java_answer()
        quiet_python_loggers()
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        archive = class_archive(self.credentials, java)
        conf, jars = start_conf(self.credentials.spark_config, archive), store_jars(self.credentials)
        if jars and not conf["spark.master"].startswith("local"):
            conf["spark.jars"] = ",".join(filter(None, [conf.get("spark.jars", ""), *jars]))
        session = self._session_of(jvm, conf, jars)
        if archive is not None and jvm.process is not None:
            tell_refused(archive, jvm.process.pid)
        warn_of_typos(session, [key for key in self.credentials.spark_config if key.startswith("spark.")])
        if self.credentials.spark_reads:
            check_s3a(session)
        return session

    def _session_of(self, jvm: Jvm, conf: dict[str, str], jars: list[str]) -> SparkSession:
        """Raises `DbtRuntimeError` with the reason if Spark does not start; its JVM has then ended."""
        try:
            jvm.launch(conf, jars)
            # Not on the command line, which other users of the machine can see.
            session, self._without_ml = first_session({**store_conf(self.credentials), **conf})
        except Exception as error:
            found = start_error(error, jvm.output, conf)
            if found is error:
                raise
            jvm.stop()
            forget_ended()
            raise found from error
        if jvm.output is not None:
            jvm.output.let_through()
        return session

    def before_python(self) -> None:
        with self._lock:
            session = self.root_session()
            if self._without_ml:
                register_ml(session)
                self._without_ml = False

    def session_conf(self) -> dict[str, str]:
        return {**super().session_conf(), **_changeable(self.credentials.spark_config)}

    def describe(self) -> dict[str, str]:
        return {"java": java_version(), "spark": f"{self.root_session().version}, embedded ({self.root_session().sparkContext.master})"}


def default_conf() -> dict[str, str]:
    """Settings for one machine: nothing listens, nothing is downloaded, nothing is left in the current directory."""
    scratch = tempfile.mkdtemp(prefix="dbt-lakehouse-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    package_root = str(Path(__file__).resolve().parents[4])
    return {
        "spark.master": "local[*]",
        "spark.app.name": "dbt-lakehouse",
        "spark.ui.enabled": "false",
        REDACTION: SECRET,
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(Path(scratch, "spark-warehouse")),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
        # Scans name their files. A Spark job that lists them again costs more than it saves on one machine.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH", "")])),
    }


def store_jars(credentials: LakehouseCredentials) -> list[str]:
    """Jars for the JVM's class path. Raises as `jars_in`."""
    return jars_in(credentials.jars, spark_home()) if credentials.jars is not None and credentials.spark_reads else []


def store_conf(credentials: LakehouseCredentials) -> dict[str, str]:
    """Settings of the warehouse's object store, if Spark reads it itself."""
    store = credentials.store
    return store.spark_settings() if store is not None and credentials.spark_reads else {}


def check_s3a(session: SparkSession) -> None:
    """Raise `DbtRuntimeError` if the JVM lacks the jars to read s3://: it was started elsewhere, or none were configured."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: TID251 - what a call of the JVM raises

    jvm: Any = session._jvm
    try:
        jvm.java.lang.Class.forName(S3A_CLASS, False, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    except Py4JError as error:
        raise DbtRuntimeError(
            f"Spark is to read s3:// itself ({READ_FILES}: SPARK), and has no S3A. Give the profile a folder with"
            f" {coordinates(spark_home())} and what it depends on as 'jars', or name that as spark.jars.packages in spark_config,"
            f" and start dbt in a process without a Spark; or leave {READ_FILES} out, and the engine reads the files for Spark."
        ) from error


def class_archive(credentials: LakehouseCredentials, java: str) -> Path | None:
    """Class archive for a start with this profile. If there is none yet, one is made after this process."""
    folder, home = folder_of(credentials.jvm_cache), spark_home()
    archive = archive_for(folder, java, home) if folder and home else None
    if archive is None:
        return None
    found = archive.find()
    if found is None:
        build_at_exit(archive)
    return found


def start_conf(chosen: dict[str, str], archive: Path | None = None) -> dict[str, str]:
    """The user's settings over the defaults. Java options are joined, because the JVM uses the last of each."""
    quiet = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    own = chosen.get(JAVA_OPTIONS, "")
    options = " ".join(filter(None, [quiet, archive_options(archive, own) if archive else "", own]))
    return {**default_conf(), **chosen, JAVA_OPTIONS: options}


def java_executable() -> str:
    """Java that Spark would start. Raises `DbtRuntimeError` with the fix."""
    home = os.environ.get("JAVA_HOME")
    executable = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if not executable or not Path(executable).exists():
        # Spark prefers JAVA_HOME over the PATH.
        raise DbtRuntimeError(f"{_NO_JAVA} (JAVA_HOME is {home}, and there is no {executable})" if home else _NO_JAVA)
    return executable


def java_answer() -> str:
    """Output of that Java's version command. Raises `DbtRuntimeError` if it is too old."""
    executable = java_executable()
    answer = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    text = answer.stderr + answer.stdout
    found = _VERSION.search(text)
    if not found or int(found.group(1)) < MINIMUM_JAVA:
        raise DbtRuntimeError(f"{_NO_JAVA} ({executable} answered: {(answer.stderr or answer.stdout).strip()[:200]})")
    return text


def java_version() -> str:
    """Version text of the Java that Spark would start. Raises as `java_answer`."""
    found = _VERSION.search(java_answer())
    return found.group(0).split('"')[1] if found else ""


def _changeable(conf: dict[str, str]) -> dict[str, str]:
    """Settings of `spark_config` that a running Spark accepts; the others take effect only at its start."""
    static = ("spark.sql.warehouse.dir", "spark.sql.catalogImplementation", "spark.sql.extensions", "spark.sql.globalTempDatabase")
    return {key: value for key, value in conf.items() if key.startswith("spark.sql.") and key not in static}
