"""The first session of a JVM, without what only Spark's own ML library wants of it.

Spark has every library on the class path extend its first session (`java.util.ServiceLoader`). Its own ML library registers three functions
there, by Scala's reflection, which takes longer than all else of a session. SQL cannot call them: Python does, in `pyspark.ml`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger

from lakehouse_engine.api.loading import PYSPARK, load_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = AdapterLogger("Lakehouse")

_EXTENSIONS = "spark.sql.extensions"
_PROVIDERS = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
_ML_JAR = "/spark-mllib_"


def first_session(conf: Mapping[str, str]) -> tuple[SparkSession, bool]:
    """The session of a JVM that was just started, and whether it lacks the functions of the ML library (`register_ml`)."""
    load_module(PYSPARK)
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext.getOrCreate(SparkConf().setAll(list(conf.items())))
    spared = "pyspark.ml" not in sys.modules and _only_ml(context) and _made_without_providers(context)
    return SparkSession(context), spared  # its settings are the context's


def _only_ml(context: Any) -> bool:
    """Whether nothing but the ML library of Spark would extend the session."""
    if context.getConf().contains(_EXTENSIONS):
        return False
    found = context._jvm.java.lang.Thread.currentThread().getContextClassLoader().getResources(_PROVIDERS)
    names = []
    while found.hasMoreElements():
        names.append(str(found.nextElement()))
    return len(names) == 1 and _ML_JAR in names[0]


def _made_without_providers(context: Any) -> bool:
    """Make the JVM's session, which PySpark finds then. Providers are looked for by the class loader of the thread.

    False where this Spark cannot be told to, or cannot make one at all, which PySpark will say.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: TID251 - what else a call of the JVM raises

    jvm = context._jvm
    thread, platform = jvm.java.lang.Thread.currentThread(), jvm.java.lang.ClassLoader.getPlatformClassLoader()
    before = thread.getContextClassLoader()
    try:
        builder = getattr(jvm, "org.apache.spark.sql.classic.SparkSession").builder().sparkContext(context._jsc.sc())
        thread.setContextClassLoader(platform)
        builder.getOrCreate()
    except (Py4JError, TypeError) as error:
        logger.debug(f"Spark starts with its ML library: {error}")
        return False
    finally:
        thread.setContextClassLoader(before)
    return True


def register_ml(session: SparkSession) -> None:
    """Have the ML library do now what it would have done with the first session."""
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.ml.InternalFunctionRegistration().apply(session._jsparkSession.extensions())
