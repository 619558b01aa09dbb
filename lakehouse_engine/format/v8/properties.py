"""Properties of tables of versions 8 and 9 that version 6 does not have (hudi-format II.1; Hudi `HoodieTableConfig`)."""

from __future__ import annotations

from lakehouse_engine.errors import PropertiesError, UnsupportedTableError, UnsupportedTableVersionError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion

TABLE_FORMAT = "native"
TIMELINE_PATH, HISTORY_PATH = "timeline", "history"
LAYOUT_VERSION = "2"

_FORMAT_KEY = "hoodie.table.format"
_LAYOUT_KEY = "hoodie.timeline.layout.version"
_FORMATS_KEY = "hoodie.table.multiple.base.file.formats.enable"
_TIMELINE_KEY, _HISTORY_KEY = "hoodie.timeline.path", "hoodie.timeline.history.path"
_PARTITION_KINDS = ("SIMPLE", "TIMESTAMP")


def check_readable(config: TableConfig) -> None:
    """Raise `UnsupportedTableVersionError` for another version or timeline layout, and `UnsupportedTableError` for a table that is not
    stored in Hudi's own format.
    """
    layout = config.properties.get(_LAYOUT_KEY, LAYOUT_VERSION).strip()
    if config.version is TableVersion.SIX or layout != LAYOUT_VERSION:
        raise UnsupportedTableVersionError(
            f"{_LAYOUT_KEY}={layout!r} with hoodie.table.version={int(config.version)}: tables of version 8 and 9 have the timeline layout"
            f" {LAYOUT_VERSION}; if Hudi left the table so, let it finish its upgrade (CALL upgrade_table)",
            table=config.name,
        )
    stored = config.properties.get(_FORMAT_KEY, TABLE_FORMAT).strip()
    if stored != TABLE_FORMAT:
        raise UnsupportedTableError(f"{_FORMAT_KEY}={stored!r}: only tables stored in Hudi's own format can be opened", table=config.name)
    if config.properties.get(_FORMATS_KEY, "false").strip().lower() == "true":
        raise UnsupportedTableError(f"{_FORMATS_KEY}=true: tables with base files of several formats cannot be opened", table=config.name)


def timeline_folder(config: TableConfig) -> str:
    """Folder of the active timeline, relative to the table. Raises `PropertiesError` for a path outside of `.hoodie`."""
    return f".hoodie/{_inside(config, _TIMELINE_KEY, TIMELINE_PATH)}"


def history_folder(config: TableConfig) -> str:
    """Folder of the archived timeline, relative to the table. `hoodie.archivelog.folder` has no effect in these versions.

    Raises `PropertiesError` as `timeline_folder`.
    """
    return f"{timeline_folder(config)}/{_inside(config, _HISTORY_KEY, HISTORY_PATH)}"


def partition_kinds(config: TableConfig) -> tuple[tuple[str, str | None], ...]:
    """Partition fields in order, each with its kind for the custom key generator, `SIMPLE` or `TIMESTAMP`; None if the table does not give
    it. Raises `PropertiesError` for another kind.
    """
    key = "hoodie.table.partition.fields"
    pairs = [part.strip().partition(":") for part in config.properties.get(key, "").split(",") if part.strip()]
    found = tuple((name, kind.strip().upper() or None) for name, _, kind in pairs)
    for name, kind in found:
        if kind is not None and kind not in _PARTITION_KINDS:
            raise PropertiesError(
                f"{key} has {name}:{kind}; a partition field is {' or '.join(_PARTITION_KINDS)}; correct it in .hoodie/hoodie.properties",
                table=config.name,
            )
    return found


def _inside(config: TableConfig, key: str, default: str) -> str:
    path = (config.properties.get(key) or default).removesuffix("/")
    if any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
        raise PropertiesError(
            f"{key}={path!r} is no folder inside another; correct it in .hoodie/hoodie.properties ({default!r} is the default)",
            table=config.name,
        )
    return path
