"""Partitions, as users name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakehouse_engine.errors import OptionError, PartitionValueError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.keygen import key_generator_of


def partition_paths_of(config: TableConfig, partitions: Sequence[str | Mapping[str, Any]], schema: pa.Schema) -> tuple[str, ...]:
    """Partition paths from paths, or from mappings of every partition column to its value, cast to its type in `schema`.

    Raises `PartitionValueError` for what names no partition, `OptionError` for a single one outside of a list.
    """
    if isinstance(partitions, str | Mapping):
        raise OptionError(f"partitions come in a list: [{partitions!r}] instead of {partitions!r}", table=config.name)
    return tuple(_path(config, one, schema) for one in partitions)


def _checked(config: TableConfig, path: str) -> str:
    """A path may have more levels than columns (values with slashes). With fewer, or other names, it would silently match nothing."""
    fields = config.partition_fields
    if not fields:
        if path:
            raise PartitionValueError(f"the table has no partitions, so there is no {path!r}; all of it is ''", table=config.name)
        return path
    is_named = not config.hive_style_partitioning or path.startswith(f"{fields[0]}=")
    if path.count("/") + 1 < len(fields) or not is_named:
        form = "/".join(f"{name}=..." if config.hive_style_partitioning else f"<{name}>" for name in fields)
        raise PartitionValueError(f"{path!r} is no partition of this table: its partitions are of the form {form}", table=config.name)
    return path


def _path(config: TableConfig, partition: str | Mapping[str, Any], schema: pa.Schema) -> str:
    if isinstance(partition, str):
        return _checked(config, partition.strip("/"))
    if set(partition) != set(config.partition_fields):
        raise PartitionValueError(f"a partition of this table is given by {list(config.partition_fields)}, not by {sorted(partition)}")
    generator = key_generator_of(config)
    formatted = {field.name for field in generator.partitioning if field.moments is not None}
    try:
        row = pa.table({name: _value(value, None if name in formatted else _type(schema, name)) for name, value in partition.items()})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise PartitionValueError(f"{dict(partition)!r:.200} holds a value that its column cannot have: {error}") from error
    return str(generator.partition_paths(row)[0].as_py())


def _type(schema: pa.Schema, name: str) -> pa.DataType | None:
    index = schema.get_field_index(name)
    return None if index < 0 else schema.field(index).type


def _value(value: Any, kind: pa.DataType | None) -> pa.Array:
    """A value as its column stores it: `1.1` of a decimal column is in the directory of `1.10`."""
    guessed = pa.array([value], pa.string() if value is None else None)
    return guessed if kind is None or guessed.type == kind else guessed.cast(kind)
