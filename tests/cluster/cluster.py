"""A standalone Spark cluster on this machine: a master and workers, each a process with a scratch directory of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.processes import HOST, SPARK_HOME, die_with_parent, free_port, stop, wait_for

ROOT = Path(__file__).resolve().parents[2]
_JAVA = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def can_hide() -> bool:
    """Whether this process may give others a view of the file system of their own."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    return subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode == 0


@dataclass
class Cluster:
    """A context manager: at its end all of its processes are gone. Should this process be killed, they die with it."""

    folder: Path
    workers: int = 2
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    port: int = 0
    _web: int = 0

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self.port}"

    def __enter__(self) -> Cluster:
        self.port, self._web = free_port(), free_port()
        arguments = ["--host", HOST, "--port", str(self.port), "--webui-port", str(self._web)]
        self._start("master", ["org.apache.spark.deploy.master.Master", *arguments])
        try:
            wait_for("the master", lambda: self._state() is not None)
            for _ in range(self.workers):
                self._start_worker()
            wait_for("the workers", lambda: self._alive() == self.workers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for process in reversed(self.processes):
            stop(process)
        for executor in executors_of(self.processes):
            os.kill(executor, signal.SIGKILL)

    def add_worker(self, hidden: Path | None = None) -> subprocess.Popen[bytes]:
        """One more worker; the directory `hidden` is empty for it and its executors."""
        alive = self._alive()
        worker = self._start_worker(hidden)
        wait_for("the worker", lambda: self._alive() == alive + 1)
        return worker

    def executors(self) -> list[int]:
        """The processes of executors that run now."""
        return executors_of(self.processes)

    def _start_worker(self, hidden: Path | None = None) -> subprocess.Popen[bytes]:
        name = f"worker-{len(self.processes)}"
        arguments = ["-c", "1", "-m", "1g", "--host", HOST, "--webui-port", str(free_port()), "-d", str(self.folder / name), self.url]
        return self._start(name, ["org.apache.spark.deploy.worker.Worker", *arguments], hidden)

    def _start(self, name: str, command: Sequence[str], hidden: Path | None = None) -> subprocess.Popen[bytes]:
        scratch = self.folder / name
        scratch.mkdir(parents=True)
        own = {"SPARK_LOCAL_IP": HOST, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_DIRS": str(scratch), "SPARK_SCALA_VERSION": "2.13"}
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_", "SPARK_"))}
        start = ["java", *_JAVA, "-cp", str(SPARK_HOME / "jars" / "*"), *command]
        if hidden is not None:
            start = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden), *start]
        with open(scratch / "log", "wb") as log:
            process = subprocess.Popen(
                start, env={**environment, **own}, stdout=log, stderr=log, cwd=scratch, start_new_session=True, preexec_fn=die_with_parent
            )
        self.processes.append(process)
        return process

    def _state(self) -> dict[str, object] | None:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._web}/json/", timeout=5) as answer:
                return dict(json.load(answer))
        except (OSError, json.JSONDecodeError):  # a master that begins answers this address by its page before it does by its state
            return None

    def _alive(self) -> int:
        workers = (self._state() or {}).get("workers", [])
        assert isinstance(workers, list)
        return sum(worker["state"] == "ALIVE" for worker in workers)


def executors_of(processes: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Executors are in the process group of their worker."""
    groups = {process.pid for process in processes}
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            is_ours = os.getpgid(int(entry.name)) in groups
        except (FileNotFoundError, ProcessLookupError):
            continue
        if is_ours and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(entry.name))
    return found


def conf(cluster: Cluster, scratch: Path) -> dict[str, str]:
    """Settings of a session on the cluster."""
    return {
        "spark.master": cluster.url,
        "spark.app.name": "cluster tests",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.driver.memory": "1g",
        "spark.executor.memory": "600m",
        # Said for each session: the JVM of this process keeps what an earlier one was given.
        "spark.task.maxFailures": "4",
        "spark.speculation": "false",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch),
        "spark.local.dir": str(scratch),
    }


INTERPRETER = sys.executable
