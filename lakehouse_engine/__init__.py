"""Apache Hudi tables from Python: written and read with pyarrow and Spark, without a Hudi jar."""

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.lakehouse import Lakehouse
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.table_config import TableConfig, TableType
from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.timeline import Timeline

__all__ = [
    "Action",
    "HoodieTable",
    "Instant",
    "Lakehouse",
    "LakehouseError",
    "State",
    "TableConfig",
    "TableType",
    "Timeline",
    "WriteOperationType",
    "WriteResult",
]
