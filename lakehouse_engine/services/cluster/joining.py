"""Writes slices one after the other to few files. Row groups of a good size are copied, small ones are put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from lakehouse_engine.files.base_file import RowGroups, opened_groups
from lakehouse_engine.model.keys import FILE_NAME, META_COLUMNS
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.services.cluster.group_rows import GroupRows, NewFile, portion
from lakehouse_engine.write.tasks.base_files import FileContext, Portion, inherited_keys
from lakehouse_engine.write.tasks.copying import Copying


def shared_out(pieces: Sequence[LoggedSlice], files: int) -> list[tuple[LoggedSlice, ...]]:
    """Slices in order for each of up to `files` files, of about equal bytes."""
    whole, before = max(1, sum(piece.slice.size for piece in pieces)), 0
    shares: list[list[LoggedSlice]] = [[] for _ in range(files)]
    for piece in pieces:
        middle = before + piece.slice.size // 2
        shares[min(files - 1, middle * files // whole)].append(piece)
        before += piece.slice.size
    return [tuple(share) for share in shares]


def join(file: NewFile, group: GroupRows) -> HoodieWriteStat | None:
    """Write all rows of the group to the file, in order; None without rows."""
    with ExitStack() as opened:
        sources = [_Source.of(file.context, group, piece, opened) for piece in group.pieces]
        copying = next((source.copying for source in sources if source.copying is not None), None)
        portions = (portion for source in sources for portion in source.portions())
        return file.write(portions, None if copying is None else copying.pattern)


@dataclass(frozen=True, slots=True)
class _Source:
    """A slice. Its base file is open if some of its row groups can be copied."""

    group: GroupRows
    groups: RowGroups | None = None
    copying: Copying | None = None

    @classmethod
    def of(cls, context: FileContext, group: GroupRows, piece: LoggedSlice, opened: ExitStack) -> _Source:
        base, storage = piece.slice.base_file, group.reader.storage
        alone = GroupRows(group.reader, group.schema, (piece,))
        if base is None or piece.slice.log_files or not Copying.may(base.size):
            return cls(alone)
        groups = opened.enter_context(opened_groups(storage, base, context.schema, meta_columns=META_COLUMNS, whole=True))
        copying = Copying.of(context, groups, inherited_keys(context, storage, base), joined=True)
        if copying is None or not any(copying.takes(number) for number in range(groups.file.num_row_groups)):
            return cls(alone)
        return cls(alone, groups, copying)

    def portions(self) -> Iterator[Portion]:
        if self.groups is None or self.copying is None:
            yield from (portion(rows) for rows in self.group.tables() if rows.num_rows)
            return
        for number in range(self.groups.file.num_row_groups):
            count = self.groups.num_rows(number)
            if self.copying.takes(number):
                named = self.groups.read(number, columns=[FILE_NAME])
                yield Portion(named, copied=self.copying.all_chunks(number), new_keys=True, inserts=count)
            else:
                yield Portion(self.groups.read(number), new_keys=True, inserts=count)
