"""The effects of logs on their base files, decoded by the driver and kept for the next read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.files.slice_reader import Rows, SliceReader
from lakehouse_engine.model.logged import LoggedSlice

_NUMBERS = itertools.count()
_OF_ONE, _OF_A_COLUMN = 1024, 768
"""Approximate bytes in memory of an effect without rows, and of a column in it; for many small effects that is most of the memory."""


@dataclass(frozen=True, slots=True)
class SliceEffect:
    """What the logs of a slice do: they remove the rows `removed` (ascending) of its base file, which has `base_rows`, and add `added`.

    `base_bytes` is the base file's size as listed, -1 if unknown. `number` is unique in this process, so what is made from an effect is
    found by its number, and need not keep the effect in memory.
    """

    base: str | None
    base_bytes: int
    base_rows: int
    removed: Rows
    added: pa.Table
    number: int = field(default_factory=_NUMBERS.__next__)

    @property
    def nbytes(self) -> int:
        return _OF_ONE + _OF_A_COLUMN * int(self.added.num_columns) + int(self.removed.nbytes + self.added.nbytes)

    def thinned(self) -> ThinnedFile:
        """The base file, for an effect that removes rows."""
        return ThinnedFile(str(self.base), self.base_bytes, self.base_rows, self.removed)


@dataclass(frozen=True, slots=True)
class ThinnedFile:
    """A file of `rows` rows, of which those `removed` (ascending) do not count; `size` in bytes, -1 if unknown."""

    path: str
    size: int
    rows: int
    removed: Rows

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class EffectCache(BoundedCache[SliceEffect]):
    """Effects of slices by everything that determines them, with the columns asked for, in at most `limit` bytes.

    A commit that changes a slice changes its files, so the old effect is not found any more and drops out in time.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda effect: effect.nbytes)

    def effects(self, reader: SliceReader, logged: Sequence[LoggedSlice], columns: Sequence[str]) -> list[SliceEffect]:
        """The effect of every slice, with `columns` among those of its added rows. Threads of this process read those that are not cached.

        The first reader of a slice decodes only the columns that it asks for. A later one that asks for others decodes all columns of the
        table, so that a slice is not read once a statement. Raises as `SliceReader.changes`.
        """
        wanted, keys = frozenset(columns), [effect_key(reader, piece) for piece in logged]
        found = [self.get(key) for key in keys]

        def is_here(effect: SliceEffect | None) -> bool:
            return effect is not None and wanted <= set(effect.added.column_names)

        missing = [number for number, effect in enumerate(found) if not is_here(effect)]

        def read(number: int) -> SliceEffect:
            before = found[number]
            more = [] if before is None else [*before.added.column_names, *reader.schema.names]
            return _effect(reader, logged[number], list(dict.fromkeys([*columns, *more])) or reader.counted)

        for number, effect in zip(missing, LocalRunner(os.cpu_count() or 1).run(read, missing, name="logs"), strict=True):
            found[number] = effect
            self.replace(keys[number], effect)
        return [effect for effect in found if effect is not None]


EFFECTS = EffectCache(limit=512 * 1024 * 1024)
"""Effects of all tables that this process reads."""


def effect_key(reader: SliceReader, piece: LoggedSlice) -> Hashable:
    """Everything that determines the effect of a slice: its files, which of their blocks count, and how they are merged.

    A log whose commit is on the timeline counts as far as that commit says. For other logs all commits matter.
    """
    base, promised = piece.slice.base_file, {promise.path for promise in piece.promises}
    told = all(log.path in promised for log in piece.slice.log_files)
    return (
        reader.storage.root,
        None if base is None else (base.path, base.size),
        tuple((log.path, log.size) for log in piece.slice.log_files),
        piece.promises,
        piece.whole,
        reader.scope.window if told else reader.scope,
        reader.rules,
        reader.verify,
        reader.schema,
    )


def _effect(reader: SliceReader, piece: LoggedSlice, columns: Sequence[str]) -> SliceEffect:
    changes, base = reader.changes(piece, columns), piece.slice.base_file
    # Spark reads nothing behind an empty chunk, so there must be none.
    path, size = (None, -1) if base is None else (base.path, base.size)
    return SliceEffect(path, size, changes.base_rows, changes.removed, changes.added.combine_chunks())
