"""Apache Hudi as a judge, for tests: reads, writes and repairs a table with a real Hudi, in a process of its own.

    with HudiJudge("0.15.0") as hudi:
        hudi.read(path)                                  # pyarrow.Table with the meta columns
        hudi.read(path, as_of="20240101000000000")
        hudi.write(path, rows, {"hoodie.datasource.write.operation": "upsert", ...})
        hudi.call("create_savepoint", path=path, commit_time=instant)

Judge a copy (`copy_table`) of a table that is needed afterwards: every writing Hudi rolls pending instants back, and registering a
table with 0.15.0 rewrites its `hoodie.properties`.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).resolve().parents[2]
BUNDLE = "hudi-spark3.5-bundle_2.12"

# Tens of rows need neither a timeline server nor 200 tasks. Everything else is Hudi's default.
SMALL_TABLE = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
}
# Hudi 1.x upgrades a table on its first write, and its procedures see the session's settings only.
KEEP_VERSION_6 = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}


class HudiError(Exception):
    """Hudi answered with an error: `kind` is the Java class of the root cause, `trace` the chain of causes."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.trace = trace


class JudgeDiedError(Exception):
    """The judge's process ended or did not answer in time; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Query:
    """A way to read a table: as of an instant, incremental from `begin` (exclusive) to `end` (inclusive), else the snapshot."""

    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    read_optimized: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    where: str | None = None
    """A condition in SQL."""

    def asked(self) -> dict[str, str]:
        """The read options that say so."""
        asked = dict(self.options)
        if self.as_of is not None:
            asked["as.of.instant"] = self.as_of
        if self.begin is not None:
            asked["hoodie.datasource.query.type"] = "incremental"
            asked["hoodie.datasource.read.begin.instanttime"] = self.begin
        if self.end is not None:
            asked["hoodie.datasource.read.end.instanttime"] = self.end
        if self.read_optimized:
            asked["hoodie.datasource.query.type"] = "read_optimized"
        return asked


def judge_python() -> Path:
    """The interpreter of the interop environment: `HUDI_PYTHON`, else that of `make interop-setup`."""
    return Path(os.environ.get("HUDI_PYTHON") or REPOSITORY / ".venv-hudi" / "bin" / "python")


def bundle_jar(version: str) -> Path:
    """The Hudi bundle of a version, in `HUDI_JARS` or where `make interop-setup` puts it."""
    return Path(os.environ.get("HUDI_JARS") or REPOSITORY / ".cache" / "hudi") / f"{BUNDLE}-{version}.jar"


def why_unavailable(version: str) -> str | None:
    """Why Hudi `version` cannot judge here, as a reason to skip; None when it can."""
    for needed in (judge_python(), bundle_jar(version)):
        if not needed.is_file():
            return f"Apache Hudi {version} is not set up ({needed.name} is missing): run `make interop-setup`"
    return None if shutil.which("java") else "no java on the PATH"


def copy_table(path: str | Path, target: Path) -> Path:
    """Copy a table, modification times kept (an upgrade takes completion times from them), Hadoop's checksum files left out."""
    return Path(shutil.copytree(path, target, ignore=shutil.ignore_patterns(".*.crc")))


class HudiJudge:
    """One JVM with one Hudi version, started by the `with` statement and ended with it.

    `conf` are further Spark settings, of the session or (in the methods) of one request; for instance
    `spark.hadoop.parquet.avro.write-old-list-structure: false`, without which a writing Hudi refuses a null inside an array.
    `keep_version` makes Hudi 1.x leave tables at version 6.
    Methods raise `HudiError` when Hudi does, and `JudgeDiedError` when the process is gone or silent for `timeout` seconds.
    """

    def __init__(
        self, version: str, *, conf: Mapping[str, str] | None = None, keep_version: bool = True, memory: str = "2g", timeout: float = 300.0
    ) -> None:
        self.version = version
        self._pinned = KEEP_VERSION_6 if keep_version and not version.startswith("0.") else {}
        self._conf = dict(conf or {})
        self._memory = memory
        self._timeout = timeout
        self._names = count()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> HudiJudge:
        self._work = Path(tempfile.mkdtemp(prefix="hudi-judge-"))
        self._log: IO[bytes] = (self._work / "log").open("wb")
        command = [str(judge_python()), str(Path(__file__).with_name("judge.py")), "--jar", str(bundle_jar(self.version))]
        command += ["--work", str(self._work), "--memory", self._memory, "--conf", json.dumps(self._conf)]
        # The settings of a Spark 4 that may run in this process would mislead the judge's Spark 3.5.
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            cwd=self._work,
            start_new_session=True,
        )
        try:
            self._answer()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def read(
        self,
        path: str | Path,
        *,
        as_of: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        read_optimized: bool = False,
        options: Mapping[str, str] | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> pa.Table:
        """What Hudi reads from the table at `path`, meta columns first; incremental from `begin` (exclusive) to `end` (inclusive)."""
        query = Query(as_of, begin, end, read_optimized, options or {})
        into = self._fresh()
        self._ask({"op": "read", "path": str(path), "options": query.asked(), "into": str(into), "conf": self._session(conf)})
        return self._take(into)

    def read_all(self, path: str | Path, queries: Sequence[Query], *, conf: Mapping[str, str] | None = None) -> list[pa.Table]:
        """What Hudi answers to each of several queries; much quicker than one after the other."""
        return self.read_many([(path, query) for query in queries], conf=conf)

    def read_many(self, asked: Sequence[tuple[str | Path, Query]], *, conf: Mapping[str, str] | None = None) -> list[pa.Table]:
        """As `read_all`, of several tables."""
        reads = [{"path": str(path), "options": query.asked(), "where": query.where, "into": str(self._fresh())} for path, query in asked]
        self._ask({"op": "reads", "reads": reads, "conf": self._session(conf)})
        return [self._take(Path(str(read["into"]))) for read in reads]

    def write(
        self,
        path: str | Path,
        rows: pa.Table,
        options: Mapping[str, str],
        *,
        mode: str = "append",
        conf: Mapping[str, str] | None = None,
    ) -> None:
        """Let Hudi write `rows` to the table; `options` are Hudi's, over `SMALL_TABLE`."""
        source = self._fresh().with_suffix(".parquet")
        pq.write_table(rows, source)
        asked = {**SMALL_TABLE, **self._pinned, **options}
        try:
            request = {"op": "write", "path": str(path), "rows": str(source), "options": asked, "mode": mode}
            self._ask({**request, "conf": self._session(conf)})
        finally:
            source.unlink()

    def judge_metadata(self, path: str | Path, *, conf: Mapping[str, str] | None = None) -> dict[str, Any]:
        """`differences` (texts) between a metadata table and its table, by Hudi's classes; `counts` of what was compared."""
        return self._ask({"op": "metadata", "path": str(path), "version": self.version, "conf": self._session(conf)})

    def sql(self, *statements: str, conf: Mapping[str, str] | None = None) -> pa.Table | None:
        """Run the statements; the rows of the last one, or None when it has none."""
        into = self._fresh()
        answer = self._ask({"op": "sql", "statements": list(statements), "into": str(into), "conf": self._session(conf)})
        return self._take(into) if answer["columns"] else None

    def call(self, procedure: str, *, conf: Mapping[str, str] | None = None, **arguments: object) -> pa.Table | None:
        """`CALL procedure(name => value, ...)`; writer options are taken from `conf`, never from the table."""
        named = ", ".join(f"{name} => {_literal(value)}" for name, value in arguments.items() if value is not None)
        return self.sql(f"call {procedure}({named})", conf=conf)

    def register(self, path: str | Path) -> str:
        """A table name for the procedures that do not take a path. Rewrites `hoodie.properties` (0.15.0): only for copies."""
        name = f"judged_{next(self._names)}"
        self.sql(f"create table {name} using hudi location {_literal(str(path))}")
        return name

    def close(self) -> None:
        """End the process, kindly first; remove what it left."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None and process.stdin is not None:
            try:
                process.stdin.write(b'{"op": "stop"}\n')
                process.stdin.close()
                process.wait(timeout=30)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for stream in (process.stdin, process.stdout, self._log):
            if stream is not None and not stream.closed:
                stream.close()
        shutil.rmtree(self._work, ignore_errors=True)

    def _session(self, conf: Mapping[str, str] | None) -> dict[str, str]:
        return {**self._pinned, **(conf or {})}

    def _fresh(self) -> Path:
        return self._work / f"exchange-{next(self._names)}"

    def _take(self, folder: Path) -> pa.Table:
        files = sorted(folder.glob("part-*.parquet"))
        table = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
        shutil.rmtree(folder)
        return table

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._process is None or self._process.stdin is None:
            raise JudgeDiedError("the judge is not running; use it in a with statement")
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise JudgeDiedError(self._obituary(f"died before {request['op']}")) from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + self._timeout
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                os.killpg(self._process.pid, signal.SIGKILL)
                raise JudgeDiedError(self._obituary(f"did not answer in {self._timeout:.0f} s"))
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                raise JudgeDiedError(self._obituary("ended"))
            line += piece
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise HudiError(answer["type"], answer["error"], answer["trace"])
        return answer

    def _obituary(self, what: str) -> str:
        log = (self._work / "log").read_text(errors="replace")
        return f"the Hudi {self.version} judge {what}; the end of its log:\n{log[-4000:]}"


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
