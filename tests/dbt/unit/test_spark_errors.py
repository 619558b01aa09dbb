"""What is shown of Spark's errors: why it did not start, what a statement does wrong, and no names that only the engine gives."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ArithmeticException, IllegalArgumentException, PySparkRuntimeError

from dbt.adapters.lakehouse.bridge.outcomes import dbt_error
from dbt.adapters.lakehouse.bridge.spark_errors import Missing, missing_relation
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.environments import start_errors
from dbt.adapters.lakehouse.environments.jvm import Jvm
from dbt.adapters.lakehouse.environments.jvm_output import JvmOutput, reason_in
from dbt.adapters.lakehouse.reading.missing import missing_text

INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector\n"
UNRESPONSIVE = """06:02:01 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are unresponsive! Giving up.
06:02:02 ERROR SparkContext: Error initializing SparkContext.
java.lang.IllegalStateException: no
\tat org.apache.spark.X(Y.scala:1)
"""
NO_MASTER = """Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or start with spark, k8s, or local
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)
"""
NO_HEAP = "Invalid maximum heap size: -Xmx1xg\nError: Could not create the Java Virtual Machine.\n"
NO_ROOM = "Error occurred during initialization of VM\nCould not reserve enough space for 943718400000KB object heap\n"


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (NO_HEAP, "Invalid maximum heap size: -Xmx1xg"),
        (NO_ROOM, "Could not reserve enough space for 943718400000KB object heap"),
        (INCUBATOR + NO_MASTER, "Master must either be yarn or start with spark, k8s, or local"),
        (INCUBATOR + UNRESPONSIVE, "Application has been killed. Reason: All masters are unresponsive! Giving up."),
        (INCUBATOR, None),
    ],
)
def test_the_reason_of_a_failed_start_is_one_line_of_what_java_printed(printed: str, reason: str | None) -> None:
    assert reason_in(printed.splitlines()) == reason


def spark_home(folder: Path, script: str) -> Path:
    for name in ("bin", "jars"):
        (folder / name).mkdir()
    submit = folder / "bin" / "spark-submit"
    submit.write_text(f"#!/bin/sh\n{script}")
    submit.chmod(0o755)
    return folder


def test_a_jvm_that_ends_is_one_error_with_the_settings_and_nothing_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(spark_home(tmp_path, "echo 'Invalid maximum heap size: -Xmx1xg' >&2; exit 1\n")))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr("dbt.adapters.lakehouse.environments.jvm._has_gateway", lambda: False)
    jvm, conf = Jvm(), {"spark.master": "local[*]", "spark.driver.memory": "1xg"}
    with pytest.raises(PySparkRuntimeError) as raised:
        jvm.launch(conf)
    error = start_errors.start_error(raised.value, jvm.output, conf)
    assert "Spark did not start with spark.master 'local[*]' and spark.driver.memory '1xg'" in str(error)
    assert str(error).endswith("Invalid maximum heap size: -Xmx1xg")
    assert capfd.readouterr().err == ""


def test_an_error_of_spark_itself_says_its_reason_and_other_errors_stay() -> None:
    spark = IllegalArgumentException("java.lang.IllegalArgumentException: Insufficient driver memory: 104857600\nPlease increase it")
    found = start_errors.start_error(spark, None, {"spark.driver.memory": "100m"})
    assert str(found).endswith("(spark_config of the profile): Insufficient driver memory: 104857600")
    own = OSError("no room")
    assert start_errors.start_error(own, None, {}) is own


def test_output_is_passed_on_without_the_noise_once_spark_has_started(capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    output = JvmOutput(os.fdopen(reading, "rb"))
    os.write(writing, f"{INCUBATOR}first\n".encode())
    while "first" not in output.lines():
        pass
    assert capfd.readouterr().err == ""
    output.let_through()
    os.write(writing, b"then\n")
    os.close(writing)
    output.lines(wait_s=30)
    assert capfd.readouterr().err == "first\nthen\n"


def session(*known: str) -> Any:
    """Stands for one whose JVM has these settings registered."""
    companion = SimpleNamespace(knownConfigs=lambda: SimpleNamespace(keySet=lambda: known))
    package = SimpleNamespace(**{"ConfigEntry$": SimpleNamespace(**{"MODULE$": companion})})
    apache = SimpleNamespace(spark=SimpleNamespace(internal=SimpleNamespace(config=package)))
    strings = SimpleNamespace(String=SimpleNamespace(join=lambda sign, names: sign.join(names)))
    return SimpleNamespace(_jvm=SimpleNamespace(org=SimpleNamespace(apache=apache), java=SimpleNamespace(lang=strings)))


def test_settings_that_spark_does_not_know_are_told_with_the_nearest_and_those_of_extensions_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(start_errors, "logger", SimpleNamespace(warning=told.append))
    spark = session("spark.driver.memory", "spark.executor.memoryOverhead", "spark.sql.shuffle.partitions")
    given = ("spark.drvier.memory", "spark.driver.memory", "spark.master", "spark.sql.catalog.glue", "spark.yarn.executor.memoryOverhead")
    start_errors.warn_of_typos(spark, given)
    (line,) = told
    assert "'spark.drvier.memory'" in line
    assert "did you mean 'spark.driver.memory'?" in line


def test_what_the_engine_calls_its_views_is_not_shown() -> None:
    divided = ArithmeticException(
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "== SQL (line 1, position 8) ==\nselect 1/0 from `__lakehouse_82ea7789_1` A...\n       ^^^\n"
    )
    assert str(dbt_error(divided)).endswith("SQLSTATE: 22012\n  in: 1/0")
    grouped = AnalysisException(
        "[MISSING_GROUP_BY] No GROUP BY. SQLSTATE: 42803; line 1 pos 0;\nAggregate [sum(id#20)]\n+- SubqueryAlias __lakehouse_82ea7789_1\n"
    )
    assert str(dbt_error(grouped)).endswith("SQLSTATE: 42803; line 1 pos 0")
    named = AnalysisException("[X] `__lakehouse_82ea7789_1`.`id` is ambiguous")
    assert str(dbt_error(named)).endswith("(a table or view).`id` is ambiguous")


def test_a_piece_of_sql_that_is_the_users_is_shown_as_spark_shows_it() -> None:
    own = "[DIVIDE_BY_ZERO] Division by zero.\n== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^"
    assert "position 8" in str(dbt_error(ArithmeticException(own)))


ABSENT = """[TABLE_OR_VIEW_NOT_FOUND] The table or view {} cannot be found. Verify the spelling and correctness of the schema and catalog.
If you did not qualify the name with a schema, verify the current_schema() output.
To tolerate the error on drop use DROP VIEW IF EXISTS. SQLSTATE: 42P01; line 3 pos 14"""


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("`sales`.`order`", "there is no table or view sales.order; did you mean sales.orders? (line 3 pos 14)"),
        ("`sales`.`zzz`", "there is no table or view sales.zzz (line 3 pos 14)"),
        ("`sale`.`orders`", "there is no table or view sale.orders; there is no schema sale, did you mean sales? (line 3 pos 14)"),
        ("`spark_catalog`.`sales`.`Client`", "sales.Client; did you mean sales.clients?"),
        ("`order`", "there is no table or view order; did you mean sales.orders?"),
        ("`zzz`", "there is no table or view zzz; names are written schema.table"),
        ("`zzz`.`orders`", "there is no schema zzz in the warehouse"),
    ],
)
def test_a_missing_table_is_one_line_with_the_nearest_names_of_the_warehouse(tmp_path: Path, named: str, said: str) -> None:
    house = Warehouse(str(tmp_path))
    for name in ("orders", "clients"):
        house.create_schema("sales")
        house.create_view("sales", name, "select 1 as id")
    missing = missing_relation(ABSENT.format(named))
    assert missing is not None
    text = missing_text(house, missing, "sales")
    assert said in text
    assert text.startswith("[TABLE_OR_VIEW_NOT_FOUND] ")
    assert "\n" not in text


def test_only_a_missing_relation_is_told_as_one() -> None:
    assert missing_relation("[UNRESOLVED_COLUMN] x") is None
    assert missing_relation("[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`b``c` cannot be found.") == Missing(("a", "b`c"), None)
