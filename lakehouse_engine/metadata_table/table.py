"""A metadata table, opened beside a state of its data table: merged records of its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakehouse_engine.errors import UnavailableError
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.reader import HFileReader
from lakehouse_engine.format.metadata_table.merging import Layer, Records, Winners, merged, newest
from lakehouse_engine.format.metadata_table.schema import payload_schema
from lakehouse_engine.metadata_table.groups import Select, Validity, layers_of
from lakehouse_engine.metadata_table.partitions import FILES, data_partition, group_number, group_numbers, merging_of
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.view.table_state import TableState

METADATA_TABLE = ".hoodie/metadata"


@dataclass(slots=True)
class MetadataTable:
    """The metadata table of `data`, with `state` of its own. Made by `open`.

    Methods raise `StoredFileNotFoundError`, and `FormatError` or `CorruptLogError`, where a file of it is gone or damaged.
    """

    data: TableState
    state: TableState
    _validity: Validity = field(repr=False)
    _slices: dict[str, list[FileSlice]] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, data: TableState) -> MetadataTable:
        """Raises `UnavailableError` where the table's properties name no metadata table, `TableNotFoundError` where it is gone."""
        if not is_in_use(data):
            raise UnavailableError(f"{data.config.name} has no metadata table (hoodie.table.metadata.partitions)", path=data.storage.root)
        state = TableState.load(storage_below(data.storage, METADATA_TABLE))
        return cls(data, state, Validity.of(state, data))

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that are complete, and so may be asked."""
        return self.data.config.metadata_partitions

    def groups(self, partition: str) -> list[FileSlice]:
        """The newest slice of each file group, by file ids. Raises `UnavailableError` where the partition is not complete."""
        if partition not in self.partitions:
            raise UnavailableError(f"the metadata table of {self.data.config.name} has no partition {partition}", partition=partition)
        if partition not in self._slices:
            self._slices[partition] = self.state.view.latest_slices(partition)
        return self._slices[partition]

    def records(self, partition: str) -> Iterator[Records]:
        """All records, one file group at a time."""
        for piece in self.groups(partition):
            yield self._merged(partition, piece, HFileReader.read_all)

    def with_prefixes(self, partition: str, prefixes: list[bytes]) -> Records:
        """The records whose keys begin with one of some prefixes, of all groups."""
        return _all([self._merged(partition, piece, lambda one: one.prefixes(prefixes)) for piece in self.groups(partition)])

    def with_keys(self, partition: str, keys: pa.Array) -> Records:
        """The records of those of some keys (text or `binary`) that are there."""
        return _all([self._merged(partition, piece, select) for piece, select in self._routed(self.groups(partition), keys)])

    def newest(self, piece: FileSlice, partition: str) -> Winners:
        """What is left of all entries of a group of a partition whose newer records take the place of older ones, undecoded."""
        return newest(self._layers(partition, piece, HFileReader.read_all))

    def newest_with_keys(self, partition: str, keys: pa.Array, within: str | None = None) -> list[Winners]:
        """As `newest`, of some keys; `within` names the data partition that they are in, for a partitioned index."""
        groups = [piece for piece in self.groups(partition) if within is None or data_partition(piece.file_id) in (None, within)]
        return [newest(self._layers(partition, piece, select)) for piece, select in self._routed(groups, keys)]

    def _routed(self, groups: list[FileSlice], keys: pa.Array) -> Iterator[tuple[FileSlice, Select]]:
        """The groups that may have some of the keys. Groups of one data partition are hashed among themselves."""
        octets = keys.cast(pa.binary())
        by_partition: dict[str | None, list[FileSlice]] = {}
        for piece in groups:
            by_partition.setdefault(data_partition(piece.file_id), []).append(piece)
        for pieces in by_partition.values():
            numbers = group_numbers(octets, len(pieces))
            for piece in pieces:
                mine = octets.take(pa.array(np.flatnonzero(numbers == group_number(piece.file_id))))
                if len(mine):
                    yield piece, _ByKeys(mine)

    def _merged(self, partition: str, piece: FileSlice, select: Select) -> Records:
        return merged(self._layers(partition, piece, select), merging_of(partition))

    def _layers(self, partition: str, piece: FileSlice, select: Select) -> list[Layer]:
        return layers_of(piece, self._validity, select)


@dataclass(frozen=True, slots=True)
class _ByKeys:
    keys: pa.Array

    def __call__(self, reader: HFileReader) -> Cells:
        return reader.get(self.keys)


def is_in_use(data: TableState) -> bool:
    """Whether readers may go by the metadata table: `files` is complete."""
    return FILES in data.config.metadata_partitions


def _all(parts: list[Records]) -> Records:
    keys = pa.concat_arrays([pa.array([], pa.binary()), *(part.keys for part in parts)])
    return Records(keys, pa.concat_tables([payload_schema().empty_table(), *(part.payloads for part in parts)]))
