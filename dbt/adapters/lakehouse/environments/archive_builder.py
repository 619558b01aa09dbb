"""`python -m dbt.adapters.lakehouse.environments.archive_builder FOLDER NAME`: make a class archive, or record why not.

An embedded Spark runs a little of everything that models use; at its end the JVM writes down which classes it loaded.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.bridge.shapes import TableShape
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.environments.archive import ClassArchive
from dbt.adapters.lakehouse.environments.jvm import Jvm
from dbt.adapters.lakehouse.environments.local import java_executable, start_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DUMP_TIMEOUT_S = 900
_TIMEOUT_S = 3000
"""Limit of the whole run, in seconds: less than the time after which another process would start."""
_ROWS = "select id, cast(id % 3 as string) as name, cast(id as decimal(12, 2)) as amount, current_timestamp() as at from range(100)"
_QUERIES = (
    "select name, count(*), sum(amount), max(at) from s.t group by name having count(*) > 1 order by name",
    "select a.id, b.name, row_number() over (partition by a.name order by a.id desc) as n from s.t a left join s.v b on a.id = b.id",
    "with x as (select id, case when id > 5 then 'a' else null end as k from s.t where name = '1') select * from x limit 3",
    "select upper(name) from s.t where at is not null and id in (select id from s.v) union all select name from s.v",
)


def main(folder: str, name: str, nice: str = "19") -> None:
    """Make the archive, unless another process does."""
    os.nice(int(nice))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left behind, including the JVM
    signal.signal(signal.SIGALRM, _too_long)
    _first_to_go()
    archive = ClassArchive(Path(folder), name)
    if not archive.claim():
        return
    dumped = archive.folder / f"{name}.{os.getpid()}.tmp"
    try:
        signal.alarm(_TIMEOUT_S)
        _make(dumped)
        archive.publish(dumped)
        archive.failure.unlink(missing_ok=True)
    except Exception as error:  # noqa: BLE001 - no user sees its output: the file is its answer
        archive.failure.write_text(f"{type(error).__name__}: {error}\n")
    finally:
        signal.alarm(0)
        dumped.unlink(missing_ok=True)
        archive.busy.unlink(missing_ok=True)
        archive.sweep()


def _too_long(*_: object) -> None:
    raise TimeoutError(f"An archive was not made within {_TIMEOUT_S} seconds")


def _first_to_go() -> None:
    """If memory runs short, let Linux end this process and its JVM before a dbt that runs beside them."""
    with contextlib.suppress(OSError):  # other systems have no such file
        Path("/proc/self/oom_score_adj").write_text("1000")


def _make(dumped: Path) -> None:
    work = Path(tempfile.mkdtemp(prefix="dbt-lakehouse-archive-"))
    jvm = Jvm()
    try:
        chosen = {
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
            "spark.eventLog.enabled": "false",  # keep this run out of everybody's sight
            "spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={dumped}" -Xlog:cds*=off',
        }
        conf = start_conf(chosen)
        jvm.launch(conf)
        class_path = _work_a_little(conf, str(work))
        assert jvm.process is not None
        assert jvm.process.stdin is not None
        jvm.process.stdin.close()  # sent to end it
        jvm.process.wait(_DUMP_TIMEOUT_S)
    finally:
        jvm.stop()
        shutil.rmtree(work, ignore_errors=True)
    _check(dumped, class_path)


def _work_a_little(conf: dict[str, str], root: str) -> str:
    """Returns the class path of the JVM."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    jvm: Any = spark._jvm
    class_path = str(jvm.java.lang.System.getProperty("java.class.path"))
    _run_models(spark.newSession(), root)
    spark.stop()
    return class_path


def _run_models(spark: SparkSession, root: str) -> None:
    house = Warehouse(root, spark)
    house.create_schema("s")
    house.create_filled("s", "t", house.sql(_ROWS), TableShape(("id",), (), (), True), {}, {})
    house.sql(f"{_ROWS} where id > 50").createOrReplaceTempView("batch")
    house.table("s", "t").upsert(house.sql("select * from batch"))
    house.create_view("s", "v", "select * from s.t where id > 10")
    for query in _QUERIES:
        house.sql(query).toArrow()
    kept = house.sql("select * from s.t").persist()
    kept.collect()
    kept.unpersist()


def _check(dumped: Path, class_path: str) -> None:
    """Make Java use the archive or fail. Raises `RuntimeError`."""
    command = [java_executable(), "-Xshare:on", f"-XX:SharedArchiveFile={dumped}", "-cp", class_path, "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if answer.returncode != 0:
        raise RuntimeError(f"Java does not take the archive that it made: {(answer.stdout + answer.stderr).strip()[:500]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
