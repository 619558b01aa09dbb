"""One plain error when Spark cannot start, and a warning about unknown settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.spark_errors import is_of_spark, spark_text
from dbt.adapters.lakehouse.environments.jvm_output import JvmOutput, reason_in
from dbt.adapters.lakehouse.names import nearest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = AdapterLogger("Lakehouse")

_SAYS_NOTHING = ("JAVA_GATEWAY_EXITED", "stopped SparkContext")
"""PySpark errors that do not say why a JVM or context ended; the JVM has printed the reason."""
_LAST_WORDS_S = 5
_TYPO = 0.9
_READ_BY_NAME = frozenset({"spark.master", "spark.app.name", "spark.local.dir", "spark.logConf"})
"""Settings that Spark reads without registering them."""


def start_error(error: Exception, output: JvmOutput | None, conf: Mapping[str, str]) -> Exception:
    """One error that says why Spark did not start, from `error` and the JVM's output, which is also logged. Other errors are returned
    unchanged.
    """
    if not is_of_spark(error):
        return error
    text = spark_text(error)
    is_silent = any(words in text for words in _SAYS_NOTHING)
    lines = output.lines(_LAST_WORDS_S if "JAVA_GATEWAY_EXITED" in text else 0) if output is not None else []
    logger.debug("\n".join([f"Spark did not start: {error}", *lines]))
    reason = (reason_in(lines) if is_silent else None) or reason_in(text.splitlines()) or text
    asked = " and ".join(f"{key} '{conf[key]}'" for key in ("spark.master", "spark.driver.memory") if key in conf)
    return DbtRuntimeError(f"Spark did not start with {asked} (spark_config of the profile): {reason}")


def warn_of_typos(session: SparkSession, given: Sequence[str]) -> None:
    """Warn about unknown settings whose names are close to known ones. Others may belong to an extension."""
    registered = _known_keys(session) if given else frozenset()
    known = registered | _READ_BY_NAME
    for key in given if registered else ():
        alike = [name for name in known if name.count(".") == key.count(".")]  # older names of settings are in another part
        if key not in known and (near := nearest(key, alike, cutoff=_TYPO)):
            logger.warning(f"spark_config has '{key}', which Spark does not know, and which has no effect; did you mean '{near}'?")


def _known_keys(session: SparkSession) -> frozenset[str]:
    """Settings registered in Spark's JVM; empty if this Spark does not list them."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: TID251 - what a call of the JVM raises

    jvm: Any = session._jvm
    try:
        entries = getattr(getattr(jvm.org.apache.spark.internal.config, "ConfigEntry$"), "MODULE$")  # Scala's companion object
        names = entries.knownConfigs().keySet()
        return frozenset(jvm.java.lang.String.join("\n", names).split("\n"))
    except (Py4JError, TypeError, AttributeError) as error:
        logger.debug(f"The names of spark_config are not compared with Spark's own: {error}")
        return frozenset()
