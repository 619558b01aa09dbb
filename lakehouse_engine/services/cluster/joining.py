"""Writes slices one after the other to few files. Row groups of a good size are copied, small ones are put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakehouse_engine.files.base_file import opened_groups
from lakehouse_engine.model.keys import FILE_NAME, META_COLUMNS
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.services.cluster.group_rows import GroupRows, NewFile, portion
from lakehouse_engine.write.tasks.base_files import FileContext, Portion, form_of, inherited_keys
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
    pattern = form_of(file.context).pattern() if any(_may_be_copied(piece) for piece in group.pieces) else None
    return file.write((portion for piece in group.pieces for portion in _portions(file.context, group, piece)), pattern)


def _may_be_copied(piece: LoggedSlice) -> bool:
    base = piece.slice.base_file
    return base is not None and not piece.slice.log_files and Copying.may(base.size)


def _portions(context: FileContext, group: GroupRows, piece: LoggedSlice) -> Iterator[Portion]:
    base, storage = piece.slice.base_file, group.reader.storage
    if base is None or not _may_be_copied(piece):
        alone = GroupRows(group.reader, group.schema, (piece,))
        yield from (portion(rows) for rows in alone.tables() if rows.num_rows)
        return
    with opened_groups(storage, base, context.schema, meta_columns=META_COLUMNS, whole=True) as groups:
        copying = Copying.of(context, groups, inherited_keys(context, storage, base), joined=True)
        for number in range(groups.file.num_row_groups):
            if copying is not None and copying.takes(number):
                rows, copied = groups.read(number, columns=[FILE_NAME]), copying.all_chunks(number).with_keys()
            else:
                rows, copied = groups.read(number), None
            yield Portion(rows, copied=copied, new_keys=True, inserts=rows.num_rows)
