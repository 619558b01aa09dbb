"""The first session of a JVM does without Spark's ML library, until Python may want it; one JVM a test, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt.adapters.lakehouse.environments import first_session
from dbt.adapters.lakehouse.environments.existing import ExistingEnvironment

ROOT = Path(__file__).resolve().parents[3]
START = """
import sys
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments.local import LocalEnvironment
conf = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.sql.shuffle.partitions": "7"}
if "ml first" in sys.argv:
    import pyspark.ml
environment = LocalEnvironment(LakehouseCredentials(schema="s", jvm_cache=False, spark_config=conf))
spark = environment.session()

def registered():
    registry = getattr(getattr(spark._jvm, "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$"), "MODULE$").internal()
    return "vector_to_array" in str(registry.listFunction())

print("AT FIRST", registered(), spark.sql("select 1").collect()[0][0], spark.conf.get("spark.sql.shuffle.partitions"))
if "ml first" not in sys.argv:
    environment.before_python()
    environment.before_python()
from pyspark.ml.functions import array_to_vector, vector_to_array
frame = spark.sql("select array(1.5d, 2.5d) as a")
print("THEN", registered(), frame.select(vector_to_array(array_to_vector("a")).alias("a")).collect()[0][0])
assert type(spark).builder.getOrCreate() is environment.root_session()
"""


@pytest.mark.parametrize(("arguments", "at_first"), [([], False), (["ml first"], True)])
def test_ml_functions_are_there_when_python_may_call_them_and_not_before(arguments: list[str], at_first: bool) -> None:
    answer = subprocess.run([sys.executable, "-c", START, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert f"AT FIRST {at_first} 1 7" in answer.stdout, answer.stderr
    assert "THEN True [1.5, 2.5]" in answer.stdout, answer.stderr


class Urls:
    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def hasMoreElements(self) -> bool:
        return bool(self.names)

    def nextElement(self) -> str:
        return self.names.pop(0)


ML = "jar:file:/spark/jars/spark-mllib_2.13-4.0.1.jar!/META-INF/services/x"


@pytest.mark.parametrize(
    ("urls", "extensions", "spared"),
    [([ML], False, True), ([ML, "jar:file:/other.jar!/META-INF/services/x"], False, False), ([], False, False), ([ML], True, False)],
    ids=["its own library alone", "another library too", "no library", "extensions of the user"],
)
def test_whatever_else_extends_sessions_is_not_left_out(urls: list[str], extensions: bool, spared: bool) -> None:
    loader = SimpleNamespace(getResources=lambda name: Urls(*urls))
    thread = SimpleNamespace(getContextClassLoader=lambda: loader)
    java = SimpleNamespace(lang=SimpleNamespace(Thread=SimpleNamespace(currentThread=lambda: thread)))
    conf = SimpleNamespace(contains=lambda key: extensions)
    context = SimpleNamespace(getConf=lambda: conf, _jvm=SimpleNamespace(java=java))
    assert first_session._only_ml(context) is spared


def test_a_session_of_somebody_elses_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_session, "register_ml", pytest.fail)
    ExistingEnvironment(SimpleNamespace()).before_python()  # type: ignore[arg-type]
