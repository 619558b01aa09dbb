"""The inputs for the properties of a new table of any version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakehouse_engine.model.merge_mode import MergeMode
from lakehouse_engine.model.table_config import TableType


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """What differs from table to table. `key_generator` is the type's word (`SIMPLE`, `COMPLEX`, `NON_PARTITION`, ...).

    `partition_fields` carry a kind for the custom key generator (`at:TIMESTAMP`). Without `merge_mode`, the ordering fields decide. `also`
    has further properties, under their own keys.
    """

    name: str
    table_type: TableType
    key_generator: str
    record_key_fields: Sequence[str] = ()
    ordering_fields: Sequence[str] = ()
    partition_fields: Sequence[str] = ()
    database: str | None = None
    merge_mode: MergeMode | None = None
    payload_class: str | None = None
    hive_style: bool = True
    url_encode: bool = False
    timezone: str = "UTC"
    cdc: bool = False
    also: Mapping[str, str] = field(default_factory=dict)
