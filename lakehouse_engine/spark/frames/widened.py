"""Base files of before a column became wider, where Spark's Parquet reader does not make the wider type of what they store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.engine import local_runner, looking_runner
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.projection import match_name
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.storage.locations import identity_of


def spark_widens(plan: ScanPlan) -> bool:
    """Whether Spark reads all base files of a plan in the table's types: of integers it makes no `float`, and `double` of short ones only
    (`ParquetVectorUpdaterFactory`). Of a `float` it makes another `double` than Hudi does (`from_floating`), and of numbers no text, which
    this engine's writes do not. Footers that this process does not know are read, of tables that have such columns.

    Raises as `base_file_metadata`.
    """
    members = (pat.is_floating, pat.is_string) if plan.foreign else (pat.is_floating,)
    wider, files = pa.schema([field for field in plan.schema if _has(field.type, members)]), tuple(plan.base_files())
    if not wider.names or not files:
        return True

    def asked() -> tuple[bool, int]:
        def reads(file: BaseFile) -> bool:
            stored = FOOTERS.read(plan.storage, file).schema.to_arrow_schema()
            return _reads_all(list(stored), list(wider), file.path)

        return all(looking_runner(local_runner({}), plan.storage).run(reads, files, name="footers")), len(files)

    identity = identity_of(plan.storage)
    if identity is None:  # in memory two tables may have one name
        return asked()[0]
    return _KNOWN.find((identity, wider, tuple((file.path, file.size) for file in files)), asked)[0]


_KNOWN: BoundedCache[tuple[bool, int]] = BoundedCache(100_000, lambda known: 1 + known[1])
"""Of the last files that this process asked, with how many they were."""


def _has(kind: pa.DataType, members: Sequence[Callable[[pa.DataType], bool]]) -> bool:
    return any(member(kind) for member in members) or any(_has(kind.field(number).type, members) for number in range(kind.num_fields))


def _reads_all(stored: list[pa.Field], wanted: list[pa.Field], path: str) -> bool:
    names = [field.name for field in stored]
    pairs = ((match_name(names, field.name, path), field) for field in wanted)
    return all(index is None or _reads(stored[index].type, field.type, path) for index, field in pairs)


def _reads(stored: pa.DataType, wanted: pa.DataType, path: str) -> bool:
    if pat.is_struct(stored) and pat.is_struct(wanted):
        return _reads_all(_children(stored), _children(wanted), path)
    if pat.is_nested(stored) or pat.is_nested(wanted):
        # Lists and maps have their children in one order, however these are called.
        pairs = zip(_children(stored), _children(wanted), strict=False)
        return all(_reads(one.type, other.type, path) for one, other in pairs)
    if pat.is_string(wanted):
        return not pat.is_integer(stored) and not pat.is_floating(stored)
    if stored == pa.float32() and wanted == pa.float64():
        return False
    return not (pat.is_integer(stored) and pat.is_floating(wanted) and wanted.bit_width <= stored.bit_width)


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)]
