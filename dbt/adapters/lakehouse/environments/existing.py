"""A SparkSession that the process already has: notebooks, schedulers, tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.environments.base import ClassicEnvironment
from lakehouse_engine.api.loading import PYSPARK, load_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ExistingEnvironment(ClassicEnvironment):
    """`method: session`. Starts nothing and stops nothing."""

    def start_early(self) -> None:
        """Nothing to do: the session belongs to the caller."""

    def end_early(self) -> None:
        """Nothing to do."""

    def before_python(self) -> None:
        """Nothing, likewise."""

    def root_session(self) -> SparkSession:
        load_module(PYSPARK)
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
        if session is None:
            raise DbtRuntimeError("method 'session' needs an active SparkSession in this process; start one first, or use method 'local'.")
        if type(session).__module__.startswith("pyspark.sql.connect"):
            raise DbtRuntimeError("method 'session' found a Spark Connect session; use method 'connect' with its url.")
        return session

    def describe(self) -> dict[str, str]:
        session = self.root_session()
        return {"spark": f"{session.version}, session of this process ({session.sparkContext.master})"}
