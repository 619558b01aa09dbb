"""Compares a metadata table with its data table by Hudi's own classes, in the process of the judge (`judge.py`).

One side are `HoodieBackedTableMetadata` and the metadata table read as a Hudi table; the other are directories, footers by `ParquetUtils`,
and the rows of a snapshot that is read by listing.
"""

from __future__ import annotations

import datetime
import decimal
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

_DATA_FILE = re.compile(r"\.parquet$|\.log\.")
_OLD = "0.15.0"


class MetadataJudge:
    """Collects `differences`, and `counts` of what was compared."""

    def __init__(self, spark: Any, version: str, path: str) -> None:
        self.spark, self.version, self.path = spark, version, path
        self.java = spark.sparkContext._jvm
        self.hudi = self.java.org.apache.hudi
        self.differences: list[str] = []
        self.ranges: dict[tuple[str, str, str], Any] = {}
        self.counts: Counter = Counter()
        self.client = self._client()
        self.context = self.hudi.client.common.HoodieSparkEngineContext(spark.sparkContext._jsc)
        self.listed = self._listed()

    def judge(self) -> dict:
        partitions = self.client.getTableConfig().getMetadataPartitions()
        named = set(partitions)
        self._files()
        slices = self._slices()
        if "column_stats" in named:
            self.ranges = self._recorded(slices)
            self._column_stats(slices)
        if "bloom_filters" in named:
            self._filters(slices)
        rows = self.spark.read.format("hudi").load(f"{self.path}/.hoodie/metadata")
        if "record_index" in named:
            self._record_index(rows)
        if "partition_stats" in named:
            self._partition_stats(rows)
        self.metadata.close()
        return {"differences": self.differences, "counts": dict(self.counts), "partitions": sorted(named)}

    def _client(self) -> Any:
        configuration = self.hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(self.spark.sparkContext._jsc.hadoopConfiguration())
        return self.hudi.common.table.HoodieTableMetaClient.builder().setConf(configuration).setBasePath(self.path).build()

    def _listed(self) -> dict[str, dict[str, int]]:
        config = self.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        table = self.hudi.metadata.HoodieBackedTableMetadata
        self.metadata = table(self.context, self.client.getStorage(), config, self.path)
        found = {}
        for partition in self.metadata.getAllPartitionPaths():
            files = self.metadata.getAllFilesInPartition(self._path(partition))
            found[partition] = {file.getPath().getName(): file.getLength() for file in files}
        return found

    def _path(self, partition: str, name: str = "") -> Any:
        return self.hudi.storage.StoragePath("/".join(part for part in (self.path, partition, name) if part))

    def _check(self, what: str, ours: Any, theirs: Any) -> None:
        self.counts[what.split(" ")[0]] += 1
        if ours != theirs:
            self.differences.append(f"{what}: {ours} in the metadata table, {theirs} beside it")

    def _files(self) -> None:
        stored = {}
        for folder, below, names in os.walk(self.path):
            below[:] = [name for name in below if name != ".hoodie"]
            if ".hoodie_partition_metadata" in names:
                partition = "" if folder == self.path else os.path.relpath(folder, self.path)
                data = [name for name in names if _DATA_FILE.search(name) and not name.endswith(".crc")]
                stored[partition] = {name: os.path.getsize(os.path.join(folder, name)) for name in data}
        self._check("partitions", sorted(self.listed), sorted(stored))
        for partition, files in stored.items():
            for name in files.keys() | self.listed.get(partition, {}).keys():
                self._check(f"files {partition}/{name}", self.listed.get(partition, {}).get(name), files.get(name))

    def _slices(self) -> dict[str, tuple[list[str], list[str]]]:
        """Names of base files and logs of the latest slices of each partition, by Hudi's view over listing."""
        listing = self.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build()
        manager = self.hudi.common.table.view.FileSystemViewManager
        view = manager.createInMemoryFileSystemView(self.context, self.client, listing)
        last = self.client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants().lastInstant().get()
        time = last.getTimestamp() if self.version == _OLD else last.requestedTime()
        collectors = self.java.java.util.stream.Collectors
        found = {}
        for partition in self.listed:
            bases, logs = [], []
            for one in view.getLatestMergedFileSlicesBeforeOrOn(partition, time).collect(collectors.toList()):
                bases += [one.getBaseFile().get().getFileName()] if one.getBaseFile().isPresent() else []
                logs += [log.getFileName() for log in one.getLogFiles().collect(collectors.toList())]
            found[partition] = (bases, logs)
        view.close()
        return found

    def _columns(self) -> list[str]:
        """Columns that Hudi itself would give statistics to."""
        resolver = self.hudi.common.table.TableSchemaResolver(self.client)
        if self.version == _OLD:
            fields = resolver.getTableAvroSchema(True).getFields()
            return [field.name() for field in fields if '"record"' not in str(field.schema()) and '"array"' not in str(field.schema())]
        definitions = self.client.getIndexMetadata().get().getIndexDefinitions()
        return list(definitions.get("column_stats").getSourceFields())

    def _footers(self, partition: str, name: str, columns: list[str]) -> Iterator[Any]:
        utils, names = self.hudi.common.util.ParquetUtils(), self.java.java.util.ArrayList()
        for column in columns:
            names.add(column)
        arguments = [self.client.getStorage(), self._path(partition, name), names]
        if self.version != _OLD:
            util = self.hudi.metadata.HoodieTableMetadataUtil
            arguments.append(util.existingIndexVersionOrDefault("column_stats", self.client))
        yield from utils.readColumnStatsFromMetadata(*arguments)

    def _recorded(self, slices: dict[str, tuple[list[str], list[str]]]) -> dict[tuple[str, str, str], Any]:
        """Ranges in the metadata table by partition, file and column."""
        pairs = self.java.java.util.ArrayList()
        for partition, (bases, logs) in slices.items():
            for name in (*bases, *logs):
                pairs.add(self.hudi.common.util.collection.Pair.of(partition, name))
        util = self.hudi.metadata.HoodieTableMetadataUtil
        found = {}
        for column in self._columns():
            for entry in self.metadata.getColumnStats(pairs, column).entrySet():
                if self.version == _OLD:
                    one = util.convertColumnStatsRecordToColumnRangeMetadata(entry.getValue())
                else:
                    one = self.hudi.stats.HoodieColumnRangeMetadata.fromColumnStats(entry.getValue())
                found[entry.getKey().getLeft(), entry.getKey().getRight(), column] = one
        return found

    def _column_stats(self, slices: dict[str, tuple[list[str], list[str]]]) -> None:
        columns = self._columns()
        for partition, (bases, _) in slices.items():
            for name in bases:
                for footer in self._footers(partition, name, columns):
                    column = footer.getColumnName()
                    found = self.ranges.get((partition, name, column))
                    # Hudi takes no bounds of long texts out of a footer, and 0.0 for those that a row group with NaN has not.
                    of = _counts if footer.getMinValue() is None or _has_nan(found) else _range
                    ours, theirs = None if found is None else of(found), of(footer)
                    self._check(f"column_stats {partition}/{name} {column}", _alike(ours, theirs), theirs)

    def _filters(self, slices: dict[str, tuple[list[str], list[str]]]) -> None:
        utils = self.hudi.common.util.ParquetUtils()
        for partition, (bases, _) in slices.items():
            for name in bases:
                found = self.metadata.getBloomFilter(partition, name)
                stored = utils.readBloomFilterFromMetadata(self.client.getStorage(), self._path(partition, name))
                ours = found.get().serializeToString() if found.isPresent() else None
                self._check(f"bloom_filters {partition}/{name}", ours == stored.serializeToString(), True)

    def _record_index(self, rows: Any) -> None:
        indexed = {}
        for row in rows.filter("type = 5").select("key", "recordIndexMetadata").collect():
            indexed[row["key"]] = (row[1]["partitionName"], _file_id(row[1]))
        snapshot = self.spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(self.path)
        columns = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")
        stored = [(key, (partition, name.split("_")[0])) for key, partition, name in snapshot.select(*columns).collect()]
        self._check("keys", len(stored), len(dict(stored)))
        for key in indexed.keys() | dict(stored).keys():
            self._check(f"record_index {key}", indexed.get(key), dict(stored).get(key))

    def _partition_stats(self, rows: Any) -> None:
        found = {}
        for row in rows.filter("type = 6").select("ColumnStatsMetadata").collect():
            found[row[0]["fileName"], row[0]["columnName"]] = (row[0]["valueCount"], row[0]["nullCount"])
        expected: Counter = Counter()
        nulls: Counter = Counter()
        for (partition, _, column), one in self.ranges.items():
            expected[partition, column] += one.getValueCount()
            nulls[partition, column] += one.getNullCount()
        for place in expected.keys() | found.keys():
            theirs = (expected[place], nulls[place]) if place in expected else None
            self._check(f"partition_stats {place}", found.get(place), theirs)


def _has_nan(found: Any) -> bool:
    """Whether a record's range ends at infinity, as the engine says of values with NaN; no row has infinity itself."""
    return found is not None and found.getMaxValue() == math.inf


def _counts(one: Any) -> tuple:
    return _range(one)[1:]


def _range(one: Any) -> tuple:
    """Bounds in a form in which those of records and of footers are equal, and the counts."""
    bounds = None if one.getNullCount() == one.getValueCount() else (_plain(one.getMinValue()), _plain(one.getMaxValue()))
    return (bounds, one.getNullCount(), one.getValueCount(), one.getTotalSize(), one.getTotalUncompressedSize())


def _alike(ours: tuple | None, theirs: tuple) -> tuple | None:
    """A record's range as a footer has it: Hudi 0.15 unwraps decimals to their unscaled bytes."""
    if ours is None or not ours[0] or not theirs[0] or not isinstance(theirs[0], tuple) or not isinstance(theirs[0][0], decimal.Decimal):
        return ours
    ends = [_decimal(end) if isinstance(end, bytes) else end for end in ours[0]]
    return (tuple(ends), *ours[1:])


def _decimal(unscaled: bytes) -> decimal.Decimal:
    return decimal.Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-15).normalize()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return (value - datetime.date(1970, 1, 1)).days
    if isinstance(value, decimal.Decimal):
        return value.normalize()
    if hasattr(value, "getClass"):
        name = value.getClass().getName()
        if "ByteBuffer" in name:
            return bytes(value.get(place) & 255 for place in range(value.position(), value.limit()))
        if name == "java.sql.Date" or name == "java.time.LocalDate":
            return (datetime.date.fromisoformat(str(value)) - datetime.date(1970, 1, 1)).days
        return str(value)
    return value


def _file_id(info: Any) -> str:
    if info["fileIdEncoding"]:
        return info["fileId"]
    digits = f"{((info['fileIdHighBits'] & (2**64 - 1)) << 64) | (info['fileIdLowBits'] & (2**64 - 1)):032x}"
    text = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return text if info["fileIndex"] == -1 else f"{text}-{info['fileIndex']}"
