"""Partition metafiles of taken-back writes that hide partitions below them.

Readers do not look for partitions inside a partition: a metafile in the table's own directory hides all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.format.file_names import PARTITION_METAFILE, is_base_file_name, is_log_file_name
from lakehouse_engine.format.partition_metafile import parse_partition_metafile
from lakehouse_engine.model.files import join_path
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.listings.listing import StorageLister


def remove_intruders(storage: Storage, partitions: Iterable[str], taken_back: Callable[[str], bool]) -> None:
    """Remove the metafile of partitions that a `taken_back` instant made, if only other partitions are left in them."""
    lister = StorageLister(storage)
    for partition in sorted(set(partitions)):
        path = join_path(partition, PARTITION_METAFILE)
        if storage.head(path) is None or not taken_back(_maker(storage, path)):
            continue
        has_data = any(is_base_file_name(entry.name) or is_log_file_name(entry.name) for entry in lister.files(partition))
        if not has_data and next(iter(lister.below(partition)), None) is not None:
            storage.delete(path)


def _maker(storage: Storage, path: str) -> str:
    """Instant that made a partition; "" if its metafile does not say, so that it stays."""
    try:
        return parse_partition_metafile(storage.read(path))[0]
    except MetadataError:
        return ""
