"""Table versions: the Hudi releases that write each, and the way to a supported one."""

from __future__ import annotations

from enum import IntEnum


class TableVersion(IntEnum):
    """Versions with a known layout. Only `format/` branches on them."""

    SIX = 6
    EIGHT = 8
    NINE = 9


_WRITTEN_BY = {
    0: "before 0.6.0",
    1: "0.6.0 to 0.8.0",
    2: "0.9.0",
    3: "0.10.0",
    4: "0.11.0",
    5: "0.12.0 to 0.13.1",
    6: "0.14.0 to 0.15.0",
    7: "0.16.0",
    8: "1.0.0 to 1.0.2",
    9: "1.1.0 and later",
}
"""Hudi releases by the table version that they write (`HoodieTableVersion`)."""


_OLDEST_UPGRADED = 2


def not_opened(version: str) -> str:
    """Error text for a table version that cannot be opened: who writes it, and how to convert it."""
    number = int(version) if version.strip().isascii() and version.strip().isdecimal() else -1
    if number not in _WRITTEN_BY:
        return f"hoodie.table.version={version!r} is no table version that is known: only tables of version 6, 8 and 9 can be opened"
    written = f"the table has version {number}, which Hudi {_WRITTEN_BY[number]} writes, and only versions 6, 8 and 9 can be opened"
    if number >= _OLDEST_UPGRADED:
        return f"{written}; `lakehouse upgrade <its directory> --to 6`, or lakehouse_engine.upgrade_table, makes it one of version 6"
    return (
        f"{written}; make a copy of it, and bring it there with Hudi 0.14 or 0.15:"
        " CALL upgrade_table(table => '<its name in Spark>', to_version => 'SIX')"
    )
