"""Makes a JVM's first session without the functions that only Spark's ML library needs.

Spark lets every library on the class path extend the first session (`java.util.ServiceLoader`). Its own ML library registers three
functions through Scala reflection, which takes longer than the rest of the session. SQL cannot call them; only `pyspark.ml` does.
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
    """First session of a JVM that was just started, and whether the ML functions are missing (`register_ml`)."""
    load_module(PYSPARK)
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext.getOrCreate(SparkConf().setAll(list(conf.items())))
    spared = "pyspark.ml" not in sys.modules and _only_ml(context) and _made_without_providers(context)
    return SparkSession(context), spared  # its settings are those of the context


def _only_ml(context: Any) -> bool:
    """True if only Spark's ML library would extend the session."""
    if context.getConf().contains(_EXTENSIONS):
        return False
    found = context._jvm.java.lang.Thread.currentThread().getContextClassLoader().getResources(_PROVIDERS)
    names = []
    while found.hasMoreElements():
        names.append(str(found.nextElement()))
    return len(names) == 1 and _ML_JAR in names[0]


def _made_without_providers(context: Any) -> bool:
    """Make the JVM's session; PySpark then finds it. The thread's class loader looks for providers.

    False if this Spark does not allow it, or cannot make a session at all; PySpark reports the reason.
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
    """Make the ML library register now what it would have registered with the first session."""
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.ml.InternalFunctionRegistration().apply(session._jsparkSession.extensions())
