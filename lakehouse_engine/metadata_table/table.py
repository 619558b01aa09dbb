"""Opens the metadata table for a state of its data table, and reads merged records of its partitions."""

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
from lakehouse_engine.metadata_table.groups import LayerSource, Select, Validity, layers_of, sources_of
from lakehouse_engine.metadata_table.opened import opened_groups
from lakehouse_engine.metadata_table.partitions import FILES, data_partition, group_number, group_numbers, merging_of
from lakehouse_engine.metadata_table.written import check_whole
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.view.table_state import TableState

METADATA_TABLE = ".hoodie/metadata"


@dataclass(slots=True)
class MetadataTable:
    """Metadata table of `data`, with its own `state`. Made by `open`.

    Methods raise `MissingFileError` or `StoredFileNotFoundError` if a file of it is gone, and `FormatError` or `CorruptLogError` if one is
    damaged.
    """

    data: TableState
    state: TableState
    _validity: Validity = field(repr=False)
    _slices: dict[str, list[FileSlice]] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, data: TableState) -> MetadataTable:
        """Open the metadata table. Raises `UnavailableError` if the table's properties name none, `TableNotFoundError` if it is gone."""
        if not is_in_use(data):
            raise UnavailableError(f"{data.config.name} has no metadata table (hoodie.table.metadata.partitions)", path=data.storage.root)
        state = metadata_state(data)
        return cls(data, state, Validity.of(state, data))

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that are complete and so can be queried."""
        return self.data.config.metadata_partitions

    @property
    def kept(self) -> tuple[str, ...]:
        """Partitions that every change is written to: the complete ones, and those that are being built, from the moment at which their
        file groups are there.
        """
        built = (name for name in self.data.config.metadata_partitions_being_built if name not in self.partitions)
        return (*self.partitions, *(name for name in built if self._listed(name)))

    def groups(self, partition: str) -> list[FileSlice]:
        """Newest slice of each file group, by file ids.

        Raises `UnavailableError` if the partition is not `kept`, and as `check_whole` for a complete one.
        """
        if partition not in self.kept:
            raise UnavailableError(f"the metadata table of {self.data.config.name} has no partition {partition}", partition=partition)
        return self._listed(partition)

    def _listed(self, partition: str) -> list[FileSlice]:
        if partition not in self._slices:
            self._slices[partition] = self._complete(partition) if partition in self.partitions else opened_groups(self.state, partition)
        return self._slices[partition]

    def _complete(self, partition: str) -> list[FileSlice]:
        check_whole(self.state, partition, self._validity.pending)
        return self.state.view.latest_slices(partition)

    def records(self, partition: str) -> Iterator[Records]:
        """All records, one file group at a time."""
        for piece in self.groups(partition):
            yield self._merged(partition, piece, HFileReader.read_all)

    def with_prefixes(self, partition: str, prefixes: list[bytes]) -> Records:
        """Records whose keys begin with one of the prefixes, from all groups."""
        return _all([self._merged(partition, piece, lambda one: one.prefixes(prefixes)) for piece in self.groups(partition)])

    def with_keys(self, partition: str, keys: pa.Array) -> Records:
        """Records with the given keys (text or `binary`), if present."""
        return _all([self._merged(partition, piece, select) for piece, select in self._routed(self.groups(partition), keys)])

    def newest(self, piece: FileSlice, partition: str) -> Winners:
        """Newest entry of each key in a group that is not deleted, undecoded; for a partition whose newer records replace older ones."""
        return newest(self._layers(partition, piece, HFileReader.read_all))

    def newest_with_keys(self, partition: str, keys: pa.Array, within: str | None = None) -> list[Winners]:
        """Like `newest`, for the given keys; `within` names their data partition, for a partitioned index."""
        groups = [piece for piece in self.groups(partition) if within is None or data_partition(piece.file_id) in (None, within)]
        return [newest(self._layers(partition, piece, select)) for piece, select in self._routed(groups, keys)]

    def _routed(self, groups: list[FileSlice], keys: pa.Array) -> Iterator[tuple[FileSlice, Select]]:
        """Groups that may have some of the keys. Keys are hashed to the groups of each data partition separately."""
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

    def sources(self, piece: FileSlice) -> list[LayerSource]:
        """Where the entries of a group come from, the base file first."""
        return sources_of(piece, self._validity)

    def _layers(self, partition: str, piece: FileSlice, select: Select) -> list[Layer]:
        return layers_of(piece, self._validity, select)


@dataclass(frozen=True, slots=True)
class _ByKeys:
    keys: pa.Array

    def __call__(self, reader: HFileReader) -> Cells:
        return reader.get(self.keys)


def metadata_state(data: TableState) -> TableState:
    """The metadata table as a table of its own. Raises `TableNotFoundError` if there is none."""
    return TableState.load(storage_below(data.storage, METADATA_TABLE))


def is_in_use(data: TableState) -> bool:
    """True if readers may use the metadata table: `files` is complete."""
    return FILES in data.config.metadata_partitions


def _all(parts: list[Records]) -> Records:
    keys = pa.concat_arrays([pa.array([], pa.binary()), *(part.keys for part in parts)])
    return Records(keys, pa.concat_tables([payload_schema().empty_table(), *(part.payloads for part in parts)]))
