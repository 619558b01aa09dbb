"""Checks whether executors can work on a table, before anything is written.

A token is put into the table's temporary folder. Executors identify themselves, read it back, and create a file beside it, which the driver
looks for. Their function is sent whole and needs nothing of the engine, which may be missing there.
"""

from __future__ import annotations

import pickle
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse_engine.commit.staging import StagingArea
from lakehouse_engine.errors import ExecutorStorageError, ExecutorVersionError, TaskError
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.partitions import as_path
from lakehouse_engine.spark.tasks.pickling import dumps
from lakehouse_engine.spark.tasks.shipping import code_of, engine_described, engine_digest
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.read_only import ReadOnlyStorage
from lakehouse_engine.timeline.config_store import PROPERTIES

_ROUNDS = 2
"""Tasks per core: a scheduler gives each executor one before a second."""

_INTERPRETER = (
    "set PYSPARK_PYTHON, before Spark starts, to an interpreter that every worker has under that path, with Python {python}, pyarrow,"
    " numpy, fastavro and this version of dbt-lakehouse"
)
_SHIP = "install the driver's version of dbt-lakehouse there, or set lakehouse.ship.engine=true, which sends it to them"

_NO_PYTHON = ("Python worker", "Python in worker", "Cannot run program", "PYTHON_VERSION_MISMATCH", "ModuleNotFoundError", "ImportError")
"""Spark's text if workers have no Python, or another than its own worker needs."""

_lock = Lock()
_met: set[tuple[str, str]] = set()
_found: set[tuple[str, str]] = set()


@dataclass(frozen=True, slots=True)
class Greeting:
    """An executor's answer. `engine` is the digest of its engine (`shipping.engine_digest`), None without one.

    `described` names it, or says why there is none; `token` is the storage's token as it sees it (None: no such file), `created` the file
    that it made, `failure` why it could not.
    """

    host: str
    python: str
    engine: str | None = None
    described: str | None = None
    token: bytes | None = None
    created: str | None = None
    failure: str | None = None


def ensure_executors(spark: SparkSession, storage: Storage) -> None:
    """Ask a session's executors once per table, before its first job on it.

    Raises `ExecutorVersionError`, `ExecutorStorageError`, and `TaskError` if Spark cannot run the question. Leaves nothing behind.
    """
    key = (code_of(spark), storage.root)
    with _lock:
        if key in _met:
            return
    check_executors(spark, storage)
    with _lock:
        _met.add(key)


def ensure_server(spark: SparkSession, storage: Storage) -> None:
    """Check, before a session's first scan of a table, that its planner finds the table. Raises `ExecutorStorageError`."""
    abilities = abilities_of(spark)
    if abilities.looks_here:
        return
    key = (abilities.application, storage.root)
    with _lock:
        if key in _found:
            return
    try:
        spark.read.text(as_path(storage.uri(PROPERTIES))).schema  # noqa: B018 - Spark looks for the file
    except PySparkException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise ExecutorStorageError(f"the Spark Connect server does not find the table's directory: {_SHARE}", table=storage.root) from error
    with _lock:
        _found.add(key)


def check_executors(spark: SparkSession, storage: Storage) -> None:
    """Like `ensure_executors`, without the cache. For a table that is only read, checks reading only."""
    if isinstance(storage, ReadOnlyStorage):
        greetings = [Greeting(*answer) for answer in _ask(spark, _question(storage, None, PROPERTIES))]
        judge(greetings, storage, storage.read(PROPERTIES))
        return
    area, token = StagingArea(storage), uuid.uuid4().hex.encode()
    try:
        folder = area.folder()
        path = f"{folder}/token"
        storage.create(path, token)
        greetings = [Greeting(*answer) for answer in _ask(spark, _question(storage, folder, path))]
        judge(greetings, storage, token)
    finally:
        area.remove()


def judge(greetings: Sequence[Greeting], storage: Storage, token: bytes) -> None:
    """Raises `ExecutorVersionError` and `ExecutorStorageError` with a host and the remedy."""
    for greeting in greetings:
        _check_version(greeting, storage)
    for greeting in greetings:
        if greeting.failure is not None or greeting.token != token:
            _refuse_storage(greeting, storage)
        if greeting.created is None or storage.head(greeting.created) is None:
            raise ExecutorStorageError(
                f"the executor on {greeting.host} created a file in the table's directory, which is not there for the driver:"
                f" {_remedy(storage)}",
                table=storage.root,
                host=greeting.host,
            )


_SHARE = "mount the warehouse under the same path on every worker (and where a Spark Connect server runs); nothing was written"
_REACH = (
    "it needs the package obstore, a way to the store's endpoint, and credentials that may read, list, write and delete there: what the"
    " driver's environment has is not sent, so give executors a role or an environment of their own, or put keys in storage_options;"
    " nothing was written"
)


def _remedy(storage: Storage) -> str:
    return _REACH if storage.local_path() is None else _SHARE


def _check_version(greeting: Greeting, storage: Storage) -> None:
    where = {"table": storage.root, "host": greeting.host}
    if greeting.python != _python():
        remedy = _INTERPRETER.format(python=_python())
        what = f"the executor on {greeting.host} runs Python {greeting.python}, the driver {_python()}"
        raise ExecutorVersionError(f"{what}: {remedy}", **where)
    if greeting.engine is None:
        raise ExecutorVersionError(f"the executor on {greeting.host} cannot import the engine ({greeting.described}): {_SHIP}", **where)
    if greeting.engine != engine_digest():
        raise ExecutorVersionError(
            f"the executor on {greeting.host} has another engine ({greeting.described}) than the driver ({engine_described()}): {_SHIP}",
            **where,
        )


def _refuse_storage(greeting: Greeting, storage: Storage) -> None:
    found = "does not find what the driver wrote" if greeting.token is None else "finds something else than the driver wrote"
    what = greeting.failure or found
    where = {"table": storage.root, "host": greeting.host}
    raise ExecutorStorageError(f"the executor on {greeting.host} {what} in the table's directory: {_remedy(storage)}", **where)


def _python() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _ask(spark: SparkSession, question: Callable[[Iterator[Any]], Iterator[Any]]) -> list[tuple[Any, ...]]:
    count = abilities_of(spark).parallelism * _ROUNDS
    try:
        answers = spark.range(0, count, 1, count).mapInArrow(question, "answer binary").toArrow()
    except Exception as error:  # a failed job may raise errors that are not PySpark's
        text = str(error)
        if any(sign in text for sign in _NO_PYTHON):
            remedy = _INTERPRETER.format(python=_python())
            raise ExecutorVersionError(f"executors cannot run the engine's Python code: {remedy}. Spark says: {_short(text)}") from error
        raise TaskError(f"the executors could not be asked whether they can write: {_short(text)}", task="handshake") from error
    return [pickle.loads(answer) for answer in answers.column(0).to_pylist()]


def _short(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return " | ".join(lines[:1] + lines[-2:] if len(lines) > 3 else lines)[:1000]


def _question(storage: Storage, folder: str | None, token: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Function that executors run. All imports are inside, and the storage comes pickled, so reading it needs no engine.

    `folder`: where they create a file; None for read-only checks.
    """
    pickled, digest = dumps(storage), engine_digest()

    def question(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib
        import pickle
        import socket
        import sys
        import uuid

        def greet() -> tuple[Any, ...]:
            host, python = socket.gethostname(), f"{sys.version_info[0]}.{sys.version_info[1]}"
            try:
                shipping = importlib.import_module("lakehouse_engine.spark.tasks.shipping")
                found = shipping.engine_digest()
                described = shipping.engine_described()
                errors = importlib.import_module("lakehouse_engine.errors")
            except (ImportError, AttributeError, SyntaxError, TypeError, OSError) as error:
                return host, python, None, f"{type(error).__name__}: {error}"
            if found != digest:
                return host, python, found, described  # another engine may not be able to unpickle the storage
            try:
                storage = pickle.loads(pickled)
            except (ImportError, errors.LakehouseError) as error:
                return host, python, found, described, None, None, f"cannot open the storage ({type(error).__name__}: {error})"
            created = f"{folder}/{uuid.uuid4().hex}"
            try:
                if storage.head(token) is None:
                    return host, python, found, described
                content = storage.read(token)
                if folder is None:
                    return host, python, found, described, content, token
                storage.create(created, b"")
            except (errors.LakehouseError, ImportError, OSError) as error:
                return host, python, found, described, None, None, f"failed ({error})"
            return host, python, found, described, content, created

        for _ in batches:
            yield pa.record_batch([pa.array([pickle.dumps(greet())], pa.binary())], ["answer"])

    return question
