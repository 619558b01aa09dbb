"""Base files older than a widening that Spark's Parquet reader cannot apply."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.engine import local_runner, looking_runner
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.projection import match_name
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.order import age
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.storage.locations import identity_of


def spark_widens(plan: ScanPlan) -> bool:
    """True if Spark reads all base files of a plan in the table's types. It reads integers neither as `float`, nor (long ones) as `double`
    (`ParquetVectorUpdaterFactory`); it converts `float` to another `double` than Hudi (`from_floating`); and it reads numbers never as
    text, which in this engine only a replacement of the whole table causes. Reads unknown footers of tables with such columns; for text
    only the oldest file with the column, because text never becomes a number again.

    Raises as `base_file_metadata`.
    """
    floats = pa.schema([field for field in plan.schema if has_type(field.type, pat.is_floating)])
    texts = pa.schema([field for field in plan.schema if plan.foreign and has_type(field.type, pat.is_string)])
    files = tuple(plan.base_files())
    if not (floats.names or texts.names) or not files:
        return True

    def asked() -> tuple[bool, int]:
        def stored(file: BaseFile) -> list[pa.Field]:
            return list(FOOTERS.read(plan.storage, file, verify=plan.verify).schema.to_arrow_schema())

        oldest = min(files, key=lambda file: age(file.instant_time))
        first = stored(oldest) if texts.names else []
        wanted = [*floats, *(field for field in texts if field.name not in floats.names and _lacks(first, [field], oldest.path))]

        def reads(file: BaseFile) -> bool:
            return _reads_all(stored(file), wanted, file.path)

        fits = _reads_all(first, list(texts), oldest.path)
        if fits and wanted:
            fits = all(looking_runner(local_runner({}), plan.storage).run(reads, files, name="footers"))
        return fits, len(files)

    identity = identity_of(plan.storage)
    if identity is None:  # in memory two tables may have the same name
        return asked()[0]
    return _KNOWN.find((identity, plan.verify, floats, texts, tuple((file.path, file.size) for file in files)), asked)[0]


_KNOWN: BoundedCache[tuple[bool, int]] = BoundedCache(100_000, lambda known: 1 + known[1])
"""Latest files that this process checked, with their number."""


def has_type(kind: pa.DataType, member: Callable[[pa.DataType], bool]) -> bool:
    """True if a type, or a nested one, is of this kind."""
    return member(kind) or any(has_type(one.type, member) for one in _children(kind))


def _lacks(stored: list[pa.Field], wanted: list[pa.Field], path: str) -> bool:
    """True if one of the fields, or a nested one, is not stored."""
    names = [field.name for field in stored]
    found = [(match_name(names, field.name, path), field) for field in wanted]
    return any(index is None or _lacks_inside(stored[index].type, field.type, path) for index, field in found)


def _lacks_inside(stored: pa.DataType, wanted: pa.DataType, path: str) -> bool:
    if pat.is_struct(stored) and pat.is_struct(wanted):
        return _lacks(_children(stored), _children(wanted), path)
    pairs = zip(_children(stored), _children(wanted), strict=False)
    return any(_lacks_inside(one.type, other.type, path) for one, other in pairs)


def _reads_all(stored: list[pa.Field], wanted: list[pa.Field], path: str) -> bool:
    names = [field.name for field in stored]
    pairs = ((match_name(names, field.name, path), field) for field in wanted)
    return all(index is None or _reads(stored[index].type, field.type, path) for index, field in pairs)


def _reads(stored: pa.DataType, wanted: pa.DataType, path: str) -> bool:
    if pat.is_struct(stored) and pat.is_struct(wanted):
        return _reads_all(_children(stored), _children(wanted), path)
    if pat.is_nested(stored) or pat.is_nested(wanted):
        # Lists and maps have their children in a fixed order, whatever their names.
        pairs = zip(_children(stored), _children(wanted), strict=False)
        return all(_reads(one.type, other.type, path) for one, other in pairs)
    if pat.is_string(wanted):
        return not pat.is_integer(stored) and not pat.is_floating(stored)
    if stored == pa.float32() and wanted == pa.float64():
        return False
    return not (pat.is_integer(stored) and pat.is_floating(wanted) and wanted.bit_width <= stored.bit_width)


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)]
