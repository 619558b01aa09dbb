"""What differs between metadata tables of the table versions (design: metadata table, sections 4 to 6)."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.table_version import TableVersion

_FIRST_COLUMNS = 32
"""User columns that Hudi 1.x gives statistics to unless told otherwise (`hoodie.metadata.index.column.stats.max.columns.to.index`)."""


@dataclass(frozen=True, slots=True)
class MetadataForm:
    """Form of a new metadata table.

    `statistics_version` is that of the index of statistics; `indexed_meta_columns` and the first `indexed_columns` user columns (None: all)
    have statistics by default; `any_decimal`: also decimals whose values may not fit, as Hudi 0.15 does.
    """

    statistics_version: str
    indexed_meta_columns: tuple[str, ...]
    indexed_columns: int | None
    any_decimal: bool
    has_partition_stats: bool


_OLD = MetadataForm("V1", META_COLUMNS, None, True, False)
_META = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_FORMS = {
    TableVersion.SIX: _OLD,
    TableVersion.EIGHT: MetadataForm("V1", _META, _FIRST_COLUMNS, False, True),
    TableVersion.NINE: MetadataForm("V2", _META, _FIRST_COLUMNS, False, True),
}


def metadata_form(version: TableVersion) -> MetadataForm:
    return _FORMS[version]
