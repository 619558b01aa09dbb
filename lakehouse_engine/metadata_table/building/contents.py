"""What partitions of a new metadata table hold, except for the record index (design: metadata table, section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakehouse_engine.compat import cached_property
from lakehouse_engine.format.file_names import is_log_file_name, parse_log_file
from lakehouse_engine.format.metadata_table.files import FILE_ENTRIES, files_payloads
from lakehouse_engine.format.metadata_table.keys import ALL_PARTITIONS, partition_identifier
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.expressions.index import ExpressionIndex
from lakehouse_engine.metadata_table.expressions.records import file_records, partition_records
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_INDEX, FILES, PARTITION_STATS
from lakehouse_engine.metadata_table.records.filters import bloom_filter_records
from lakehouse_engine.metadata_table.records.joining import completed, joined
from lakehouse_engine.metadata_table.records.statistics import base_file_statistics, log_statistics, partition_statistics
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True)
class Contents:
    """Records of each partition for a state of the table. What is pending in it, its instants write when they complete.

    `known` are the records of `column_stats` if they are not to be computed from the files.
    """

    data: TableState
    known: Records | None = None

    def look(self) -> None:
        """List all files now. Without the table's lock, a later listing would show those of later instants."""
        self.data.view.latest_slices()
        assert self._all is not None

    def records(self, partition: str) -> Records:
        """All records of a partition. Raises as the functions of `records`."""
        if partition == FILES:
            return self._files()
        if partition == COLUMN_STATS:
            return self._statistics
        if partition == BLOOM_FILTERS:
            return bloom_filter_records(self.data, self._bases)
        if partition.startswith(EXPRESSION_INDEX):
            return self._expressions(partition)
        assert partition == PARTITION_STATS
        return partition_statistics(self.data, self.data.view.latest_slices(), self._statistics if self.known is None else self.known)

    def _expressions(self, partition: str) -> Records:
        index = ExpressionIndex.of(self.data, stored_definitions(self.data)[partition])
        records = file_records(self.data, index, [*self._bases, *self._logs])
        if index.shape is not None or not self.data.config.partition_fields:
            return records
        return joined([records, partition_records(self.data, index, self.data.view.latest_slices(), records)])

    @cached_property
    def _statistics(self) -> Records:
        return joined([base_file_statistics(self.data, self._bases), log_statistics(self.data, self._logs)])

    @cached_property
    def _all(self) -> dict[str, list[BaseFile | LogFile]]:
        """Files by partition: those of latest and older slices, of replaced groups, and of change data capture."""
        return {path: list(self._of_partition(path)) for path in self.data.view.partitions()}

    @property
    def _bases(self) -> list[BaseFile]:
        return [file for files in self._all.values() for file in files if isinstance(file, BaseFile)]

    @property
    def _logs(self) -> list[LogFile]:
        return [file for files in self._all.values() for file in files if isinstance(file, LogFile)]

    def _of_partition(self, path: str) -> Iterator[BaseFile | LogFile]:
        for group in self.data.view.file_groups(path):
            for piece in group.slices:
                yield from (() if piece.base_file is None else (piece.base_file,))
                yield from piece.log_files
        if self.data.config.cdc_enabled:
            yield from self._captured(path)

    def _captured(self, path: str) -> Iterator[LogFile]:
        for entry in self.data.storage.list(path):
            if not entry.is_directory and is_log_file_name(entry.name):
                log = parse_log_file(path, entry.name, entry.size)
                if log.is_cdc and self.data.timeline.is_committed(log.instant_time):
                    yield log

    def _files(self) -> Records:
        # Hudi refuses files of no bytes, which log files of dead writers may be.
        listed = {path: [file for file in files if file.size > 0] for path, files in self._all.items()}
        filled = [path for path in listed if listed[path]]
        keys = pa.array([ALL_PARTITIONS, *(partition_identifier(path) for path in filled)], pa.string())
        counts = [len(listed), *(len(listed[path]) for path in filled)]
        files = [file for path in filled for file in listed[path]]
        names = [*(partition_identifier(path) for path in listed), *(file.name for file in files)]
        sizes = [*(0 for _ in listed), *(file.size for file in files)]
        record = pa.array(np.repeat(np.arange(len(keys)), counts), pa.int64())
        columns = [record, pa.array(names, pa.string()), pa.array(sizes, pa.int64()), pa.repeat(False, len(names))]
        entries = pa.Table.from_arrays(columns, schema=FILE_ENTRIES)
        return Records(keys.cast(pa.binary()), completed(files_payloads(keys, entries)))
