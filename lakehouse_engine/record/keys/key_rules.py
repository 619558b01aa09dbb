"""Consistency of a table's properties about keys and partitions.

A write under contradictory properties would put known keys where no reader looks. Reads follow the timeline and are not affected.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.errors import ContradictoryPropertiesError, UnsupportedTableError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.keygen import KEY_GENERATORS

_CLASS, _TYPE = "hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"
_KEYS, _PARTITIONS = "hoodie.table.recordkey.fields", "hoodie.table.partition.fields"
_ONE_OF_EACH = ("SimpleKeyGenerator", "TimestampBasedKeyGenerator")
_ANY_CLASS = "USER_PROVIDED"


def check_key_rules(config: TableConfig, columns: Sequence[str]) -> None:
    """`columns` are the table's user columns; None if it has no schema yet.

    Raises `ContradictoryPropertiesError` with the properties, what they say, and which to correct.
    """
    _check_generator(config)
    _check_columns(config, columns)


def family_of(text: str | None) -> str | None:
    """Class whose rules a key generator's class or type follows; None for an unknown one."""
    return KEY_GENERATORS.get(text.rsplit(".", 1)[-1]) if text else None


def _check_generator(config: TableConfig) -> None:
    named, kind = config.properties.get(_CLASS), config.properties.get(_TYPE)
    family = family_of(named or kind)
    if named and kind and kind.upper() != _ANY_CLASS and family_of(kind) != family:
        raise contradiction(config, f"{_CLASS}={named} and {_TYPE}={kind} are two key generators", f"{_CLASS} or {_TYPE}")
    keys, partitions = config.record_key_fields, config.partition_fields
    stated = f"{_CLASS}={named}" if named else f"{_TYPE}={kind}"
    if family == "NonpartitionedKeyGenerator" and partitions:
        what = f"{stated} has no partitions, and {_PARTITIONS}={','.join(partitions)} has"
        raise contradiction(config, what, f"{_CLASS} or {_PARTITIONS}")
    if family in _ONE_OF_EACH and len(keys) > 1:
        what = f"{stated} makes keys of one column, and {_KEYS} has {len(keys)}: {','.join(keys)}"
        raise contradiction(config, what, f"{_CLASS} or {_KEYS}")
    if family in _ONE_OF_EACH and len(partitions) > 1:
        what = f"{stated} makes partitions of one column, and {_PARTITIONS} has {len(partitions)}: {','.join(partitions)}"
        raise contradiction(config, what, f"{_CLASS} or {_PARTITIONS}")
    # A column may be in a key twice; the stored keys show it.
    if len(set(partitions)) < len(partitions):
        raise contradiction(config, f"{_PARTITIONS}={','.join(partitions)} names a column twice", _PARTITIONS)


def _check_columns(config: TableConfig, columns: Sequence[str]) -> None:
    known = {name.lower() for name in columns}
    for key, names in ((_KEYS, config.record_key_fields), (_PARTITIONS, config.partition_fields)):
        for name in names:
            if known and name.split(".")[0].lower() not in known:
                raise contradiction(config, f"{key} names {name!r}, which is no column of the table; it has {', '.join(columns)}", key)


def contradiction(config: TableConfig, what: str, correct: str) -> ContradictoryPropertiesError:
    """Error for a write to a table whose properties contradict each other; `correct` names those to check."""
    remedy = f"correct {correct} in .hoodie/hoodie.properties (a line #lakehouse.seal=... has to go) to what the table was written with"
    return ContradictoryPropertiesError(_refusal(what, remedy), table=config.name)


def refused_write(config: TableConfig, what: str, remedy: str) -> UnsupportedTableError:
    """Error for a write whose keys would not be found again."""
    return UnsupportedTableError(_refusal(what, remedy), table=config.name)


def _refusal(what: str, remedy: str) -> str:
    return f"{what}: a write would put known keys where nobody looks for them. Reads go on; {remedy}"
