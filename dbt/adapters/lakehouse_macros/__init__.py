"""The macros that models call as `lakehouse.at(...)` and `lakehouse.changes(...)`.

dbt puts the macros of an adapter's own package into one global namespace, without the package's name. This second plugin brings a
macro package that is called `lakehouse`, and does nothing else; the adapter `lakehouse` depends on it.
"""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.lakehouse.connections import LakehouseConnectionManager
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.impl import LakehouseAdapter
from dbt.include import lakehouse_macros


class LakehouseMacrosConnectionManager(LakehouseConnectionManager):
    TYPE = "lakehouse_macros"


class LakehouseMacrosAdapter(LakehouseAdapter):
    """Gives the plugin its type; never connected."""

    ConnectionManager = LakehouseMacrosConnectionManager  # type: ignore[assignment]  # dbt-spark names its own class as the type


Plugin = AdapterPlugin(
    adapter=LakehouseMacrosAdapter,  # type: ignore[arg-type]  # dbt-spark's adapters do not fit dbt's protocol
    credentials=LakehouseCredentials,
    include_path=lakehouse_macros.PACKAGE_PATH,
)

__all__ = ["LakehouseMacrosAdapter", "Plugin"]
