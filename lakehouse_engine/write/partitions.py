"""Partitions as users name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakehouse_engine.errors import OptionError, PartitionValueError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.keygen import key_generator_of


def partition_paths_of(config: TableConfig, partitions: Sequence[str | Mapping[str, Any]]) -> tuple[str, ...]:
    """Partition paths from paths, or from mappings of every partition column to its value.

    Raises `PartitionValueError` for what names no partition of the table, `OptionError` for a single one that is not in a list.
    """
    if isinstance(partitions, str | Mapping):
        raise OptionError(f"partitions come in a list: [{partitions!r}] instead of {partitions!r}", table=config.name)
    return tuple(_path(config, one) for one in partitions)


def _checked(config: TableConfig, path: str) -> str:
    """A path may have more levels than columns, where values hold slashes; with fewer, or other names, it would silently name nothing."""
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


def _path(config: TableConfig, partition: str | Mapping[str, Any]) -> str:
    if isinstance(partition, str):
        return _checked(config, partition.strip("/"))
    if set(partition) != set(config.partition_fields):
        raise PartitionValueError(f"a partition of this table is given by {list(config.partition_fields)}, not by {sorted(partition)}")
    try:
        row = pa.table({name: pa.array([value], pa.string() if value is None else None) for name, value in partition.items()})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise PartitionValueError(f"{dict(partition)!r:.200} holds a value that no column has: {error}") from error
    return str(key_generator_of(config).partition_paths(row)[0].as_py())
