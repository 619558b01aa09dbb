"""`.hoodie_partition_metadata`: without this file Hudi does not see a partition and returns no rows for it (hudi-format 1.1)."""

from __future__ import annotations

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.format.properties import check_properties_seal, parse_properties, render_properties, seal_properties


def render_partition_metafile(commit_time: str, depth: int) -> bytes:
    """The file's content. `commit_time`: the instant that made the partition. `depth`: directory levels below the table, 0 if
    unpartitioned.
    """
    if depth < 0:
        raise MetadataError(f"a partition has no negative depth: {depth}")
    properties = {"commitTime": commit_time, "partitionDepth": str(depth)}
    return seal_properties(render_properties(properties, comments=("partition metadata",)))


def parse_partition_metafile(data: bytes) -> tuple[str, int]:
    """Commit time and depth. Raises `MetadataError` if one is missing or not a number, `PropertiesError` if the seal is broken."""
    check_properties_seal(data)
    properties = parse_properties(data)
    commit_time, depth = properties.get("commitTime", ""), properties.get("partitionDepth", "")
    if not commit_time or not (depth.isascii() and depth.isdigit()):
        raise MetadataError(f"partition metafile with commitTime={commit_time!r}, partitionDepth={depth!r}: it is torn, write it again")
    return commit_time, int(depth)
