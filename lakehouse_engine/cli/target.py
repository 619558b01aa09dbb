"""Warehouse and table that a command's arguments name."""

from __future__ import annotations

from dataclasses import dataclass
from os import path as ospath

from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import OptionError, SqlError, TableNotFoundError
from lakehouse_engine.storage.locations import is_object_store, storage_for
from lakehouse_engine.view.table_state import TableState

META_FOLDER = ".hoodie"
_PROPERTIES = f"{META_FOLDER}/hoodie.properties"


@dataclass(slots=True)
class Settings:
    """Options that every command accepts, before or after its name."""

    warehouse: str
    as_json: bool = False

    def catalog(self) -> Catalog:
        """Raises `OptionError` if the warehouse does not exist."""
        if not is_object_store(self.warehouse) and not ospath.isdir(self.warehouse):
            raise OptionError(f"there is no warehouse directory {self.warehouse!r}; give one with --warehouse")
        return Catalog(storage_for(self.warehouse))

    def open(self, table: str) -> TableState:
        """The table that `table` names. Raises `TableNotFoundError`, and `SqlError` for text that is neither a name nor a path."""
        return TableState.load(storage_for(self.directory(table)))

    def directory(self, table: str, *, damaged: bool = False) -> str:
        """Place of the table that `table` names; `damaged`: even if its properties are missing. Raises as `open`."""
        if "/" in table or table.startswith((".", "~", "file:")):
            return ospath.expanduser(table)
        if ospath.isfile(f"{table}/{_PROPERTIES}"):
            return table
        try:
            name = RelationName.parse(table)
        except SqlError as error:
            raise SqlError(f"{table!r} is neither schema.table nor a table's directory") from error
        catalog = self.catalog()
        if damaged and ospath.isdir(f"{catalog.storage.root}/{name.path}/{META_FOLDER}"):
            return f"{catalog.storage.root}/{name.path}"
        try:
            return f"{catalog.storage.root}/{catalog.table(name).path}"
        except TableNotFoundError as error:
            message = f"{error.message} (warehouse {catalog.storage.root})"
            raise TableNotFoundError(message, **error.context) from error
