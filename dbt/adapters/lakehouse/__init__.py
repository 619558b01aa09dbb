"""dbt adapter `lakehouse`: Apache Hudi tables on an embedded Spark, through `lakehouse_engine`."""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.lakehouse.column import LakehouseColumn
from dbt.adapters.lakehouse.config.target import TargetCredentials
from dbt.adapters.lakehouse.connections import LakehouseConnectionManager
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.impl import LakehouseAdapter
from dbt.adapters.lakehouse.relation import LakehouseRelation
from dbt.include import lakehouse

Plugin = AdapterPlugin(
    adapter=LakehouseAdapter,  # type: ignore[arg-type]  # dbt-spark's adapters do not fit dbt's protocol
    credentials=TargetCredentials,
    include_path=lakehouse.PACKAGE_PATH,
    dependencies=["spark", "lakehouse_macros"],
)

__all__ = [
    "LakehouseAdapter",
    "LakehouseColumn",
    "LakehouseConnectionManager",
    "LakehouseCredentials",
    "LakehouseRelation",
    "Plugin",
]
