"""Names of relations and catalogs, and of columns that the engine adds."""

from lakehouse_engine.catalog.names import RelationName, check_catalog_name, split_name
from lakehouse_engine.model.keys import DELETED_AT, META_COLUMNS

__all__ = ["DELETED_AT", "META_COLUMNS", "RelationName", "check_catalog_name", "split_name"]
