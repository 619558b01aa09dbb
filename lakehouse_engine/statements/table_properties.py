"""TBLPROPERTIES of CREATE TABLE: key, ordering, partitions and type, under Hudi's SQL names or keys."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.table_config import DELETES_KEY
from lakehouse_engine.options import OPTIONS, TABLE_KEYS
from lakehouse_engine.record.keys.keygen import PARTITION_FIELD_OPTION
from lakehouse_engine.sql.grammar.statements import Properties

_SQL_NAMES = {"primarykey": "record_key", "precombinefield": "ordering_fields", "orderingfields": "ordering_fields", "type": "table_type"}
_TYPES = {"copy_on_write": "cow", "merge_on_read": "mor"}


@dataclass(frozen=True, slots=True)
class TableProperties:
    """`fields` are arguments of `Lakehouse.create_table` that properties set; `options` all other `hoodie.*` keys."""

    fields: dict[str, str]
    options: dict[str, str]

    @classmethod
    def of(cls, properties: Properties) -> TableProperties:
        """Raises `OptionError` for a property without effect, and for two that contradict each other."""
        fields: dict[str, str] = {}
        options: dict[str, str] = {}
        said: dict[str, str] = {}
        for key, value in properties:
            field = _SQL_NAMES.get(key.lower()) or TABLE_KEYS.get(key.lower())
            if key.lower() == PARTITION_FIELD_OPTION and ":" not in value:  # otherwise it says how a key generator makes paths of them
                field = "partition_by"
            if field is None:
                _check_is_option(key)
                options[key] = value
                continue
            meant = _TYPES.get(value.lower(), value.lower()) if field == "table_type" else value
            if _names(fields.setdefault(field, meant)) != _names(meant):
                raise OptionError(f"the table properties {said[field]} = {fields[field]!r} and {key} = {value!r} differ; keep one")
            said.setdefault(field, key)
        return cls(fields, options)

    def names(self, field: str) -> tuple[str, ...]:
        """Columns that a field names."""
        return _names(self.fields.get(field))


def _check_is_option(key: str) -> None:
    if not key.lower().startswith("hoodie.") and key not in (*OPTIONS, DELETES_KEY):
        raise OptionError(f"the table property {key!r} has no effect; there are primaryKey, preCombineField, type and hoodie.* keys")


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
