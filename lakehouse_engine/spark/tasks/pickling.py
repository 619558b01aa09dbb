"""Pickling for executors: includes closures, cuts Arrow slices to their own data, and sends shared parts once.

A slice of an Arrow array would pickle its whole parent, so Arrow data travels as IPC.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

_ARROW = (pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)


class _Pickler(cloudpickle.Pickler):
    """`shared` maps the `id` of objects to numbers, which a pickle holds instead of the objects."""

    def __init__(self, file: io.BytesIO, shared: Mapping[int, int]) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self._shared = shared
        self.met: set[int] = set()

    def persistent_id(self, value: object) -> int | None:
        number = self._shared.get(id(value))
        if number is not None:
            self.met.add(number)
        return number

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, _ARROW):
            return _reduced(value)
        return super().reducer_override(value)  # type: ignore[no-untyped-call]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, load: Callable[[int], object]) -> None:
        super().__init__(file)
        self._load = load

    def persistent_load(self, number: int) -> object:
        return self._load(number)


def dumps(value: object) -> bytes:
    """Pickled, closures included."""
    return dumps_beside(value, {})[0]


def dumps_beside(value: object, shared: Mapping[int, int]) -> tuple[bytes, set[int]]:
    """Pickle with objects whose `id` is in `shared` replaced by their numbers, which `loads` resolves; returns the numbers too."""
    file = io.BytesIO()
    pickler = _Pickler(file, shared)
    pickler.dump(value)  # type: ignore[no-untyped-call]
    return file.getvalue(), pickler.met


def loads(data: bytes, load: Callable[[int], object]) -> Any:
    """Inverse of `dumps_beside`; `load` returns the object of a number."""
    return _Unpickler(io.BytesIO(data), load).load()


def shared_parts(tasks: Sequence[object]) -> list[object]:
    """Objects that several of these tasks hold, outermost ones only: Arrow data, arrays, and everything above a plain value."""
    holders: dict[int, int] = {}
    for task in tasks:
        for part in {id(part): part for part in _parts(task, holders)}.values():
            holders[id(part)] = holders.get(id(part), 0) + 1
    found: dict[int, object] = {}
    for task in tasks:
        for part in _outermost(task, lambda part: holders[id(part)] > 1):
            found.setdefault(id(part), part)
    return list(found.values())


def _inner(value: object) -> Iterator[object]:
    """Parts of a task, or of a part."""
    if isinstance(value, tuple | list):
        yield from value
    elif is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name) for field in fields(value))


def _is_part(value: object) -> bool:
    return isinstance(value, (*_ARROW, np.ndarray, pa.Schema)) or (is_dataclass(value) and not isinstance(value, type))


def _parts(value: object, met: Container[int]) -> Iterator[object]:
    """Parts of objects that other tasks also hold (`met`, by id) were already reported."""
    for inner in _inner(value):
        is_part = _is_part(inner)
        if is_part:
            yield inner
        if not is_part or id(inner) not in met:
            yield from _parts(inner, met)


def _outermost(value: object, chosen: Callable[[object], bool]) -> Iterator[object]:
    for inner in _inner(value):
        if _is_part(inner) and chosen(inner):
            yield inner
        else:
            yield from _outermost(inner, chosen)


def _reduced(value: Any) -> tuple[Callable[..., object], tuple[object, ...]]:
    if isinstance(value, pa.Table):
        return _table, (_ipc(value),)
    if isinstance(value, pa.RecordBatch):
        return _batch, (_ipc(pa.Table.from_batches([value])),)
    if isinstance(value, pa.ChunkedArray):
        return _chunked, (_ipc(pa.table([value], names=[""])),)
    return _array, (_ipc(pa.table([value], names=[""])),)


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _table(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def _batch(data: bytes) -> pa.RecordBatch:
    table = _table(data)
    return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=table.schema)


def _chunked(data: bytes) -> pa.ChunkedArray:
    return _table(data).column(0)


def _array(data: bytes) -> pa.Array:
    column = _table(data).column(0)
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
