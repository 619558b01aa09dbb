"""Indexes of a table by name: the list of them, one more, one less. Each is a partition of the metadata table.

An index goes by the user's name; the partition has Hudi's name for it (Hudi `HoodieTableMetadataUtil`): `record_index`, `column_stats` and
`bloom_filters` are one for each table, `secondary_index_<name>` and `expr_index_<name>` one for each name.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakehouse_engine.errors import CommitOutcomeUnknownError, LakehouseError, OptionError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition, column_stats_definition, secondary_index_definition
from lakehouse_engine.format.metadata_table.forms import metadata_form
from lakehouse_engine.metadata_table.building.build import check_partitions
from lakehouse_engine.metadata_table.building.drop import check_not_needed
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.partitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
)
from lakehouse_engine.metadata_table.records.columns import indexed, indexed_columns
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.services import IndexChange, TableIndex
from lakehouse_engine.services.metadata import building, indexing
from lakehouse_engine.services.metadata.expressions import EXPRESSION, expression_definition, is_expression
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

SECONDARY = "secondary_index"
_ONE_EACH = (RECORD_INDEX, COLUMN_STATS, BLOOM_FILTERS, PARTITION_STATS)
TYPES = (*_ONE_EACH, SECONDARY, EXPRESSION)
"""Types of indexes, by Hudi's words."""
SCHEDULE, RUN, SCHEDULE_AND_RUN = "schedule", "run", "schedule_and_run"
OPS = (SCHEDULE, RUN, SCHEDULE_AND_RUN)
"""What `create` can do."""
_PREFIXES = {SECONDARY_INDEX: SECONDARY, EXPRESSION_INDEX: EXPRESSION}
_OF_ANY = (
    "the expression index %s of %s is on %s: Hudi 1.2 goes by it for each equality and IN on that column, and loses rows in those of"
    " another expression than %s, or of none; let such queries of Hudi read with hoodie.enable.data.skipping=false (docs/metadata-table.md)"
)
_NAME = re.compile(r"[A-Za-z0-9_]{1,200}")


def indexes(data: TableState) -> list[TableIndex]:
    """Indexes of the table's metadata table, by partition, then those of pending builds; `files`, its list of files, is none of them.

    Raises `FormatError` if the stored definitions do not parse.
    """
    there, defined = _built(data), stored_definitions(data)
    known = {FILES, *(one.partition for one in there)}
    pending = ((name, build) for build, names in indexing.planned_builds(data) for name in names if name not in known)
    return [*there, *(replace(_index(data, name, defined.get(name)), planned=build.requested_time) for name, build in pending)]


def _built(data: TableState) -> list[TableIndex]:
    defined = stored_definitions(data)
    return [_index(data, name, defined.get(name)) for name in data.config.metadata_partitions if name != FILES]


def _index(data: TableState, partition: str, defined: IndexDefinition | None) -> TableIndex:
    name, kind = partition, partition
    for prefix, named in _PREFIXES.items():
        if partition.startswith(prefix):
            name, kind = partition.removeprefix(prefix), named
    columns: Sequence[str] = () if defined is None else defined.source_fields
    if partition in (COLUMN_STATS, PARTITION_STATS):
        columns = indexed_columns(data)
    elif partition in (RECORD_INDEX, BLOOM_FILTERS):
        columns = data.config.record_key_fields
    options = dict(defined.options) if defined is not None and kind == EXPRESSION else {}
    stored_as = defined.index_type if defined is not None and kind == EXPRESSION else ""
    return TableIndex(name=name, type=kind, columns=tuple(columns), partition=partition, stored_as=stored_as, options=options)


def create(
    storage: Storage,
    name: str,
    *,
    columns: Sequence[str] | None = None,
    kind: str | None = None,
    expression: str | None = None,
    options: Mapping[str, str] | None = None,
    op: str = SCHEDULE_AND_RUN,
    if_not_exists: bool = False,
    dry_run: bool = False,
    lock_timeout_ms: int,
) -> IndexChange:
    """Build an index, and the metadata table if there is none, beside writers. `kind` is one of `TYPES`; None: what the name says, else an
    expression index if there is an `expression`, else a secondary index. `options` are those of an expression. `op` is one of `OPS`: plan
    it, run its plan, or both.

    Raises, with nothing changed, `OptionError` for an unknown `op`, a name that is taken or does not fit, columns that the index cannot
    have, and a run without a plan; `UnavailableError` for an expression that is not computed here; and as `indexing.schedule` and
    `indexing.run`.
    """
    chosen = kind if kind is not None else name if name in _ONE_EACH else EXPRESSION if expression or options else SECONDARY
    _check_asked(name, chosen, op, has_expression=bool(expression or options))
    data = TableState.load(storage)
    if name in {one.name for one in _built(data)}:
        if if_not_exists:
            return IndexChange(index=name, dry_run=dry_run)
        message = f"{data.config.name} has an index {name} already; drop it first, or ask for it only if there is none (if_not_exists)"
        raise OptionError(message, table=data.config.name)
    partition = _partition(name, chosen)
    if is_expression(name, chosen):
        define = [expression_definition(data, name, chosen, columns, expression, options)]
    else:
        define = _definitions(data, partition, columns)
    wanted = check_partitions(data, [partition], define)
    new = tuple(sorted(one for one in wanted if one not in data.config.metadata_partitions))
    planned = indexing.planned_build(data, partition)
    _check_plan(data, name, op, planned, is_other=planned is not None and _is_other(define, stored_definitions(data).get(partition)))
    if dry_run or op != SCHEDULE:
        indexing.check_can_begin(data)
    if dry_run:
        time = None if planned is None else planned.requested_time
        done, to_come = ((), new) if op == SCHEDULE else (new, ())
        return IndexChange(index=name, instant=time, planned=to_come, built=done, dry_run=True)
    is_new = False
    if planned is None or op != RUN:
        scheduled = indexing.schedule(storage, [partition], define, lock_timeout_ms=lock_timeout_ms)
        if scheduled is None:
            return IndexChange(index=name)
        planned, is_new = scheduled
        if op == SCHEDULE:
            return IndexChange(index=name, instant=planned.requested_time, planned=indexing.planned_partitions(storage, planned))
    built = _run(storage, planned, data, is_new=is_new, lock_timeout_ms=lock_timeout_ms)
    if partition.startswith(EXPRESSION_INDEX):
        logger.warning(_OF_ANY, name, data.config.name, define[0].source_fields[0], define[0].function)
    return IndexChange(index=name, instant=planned.requested_time, built=built)


def _check_asked(name: str, kind: str, op: str, *, has_expression: bool) -> None:
    """Raise `OptionError` for what no table could do."""
    if op not in OPS:
        raise OptionError(f"{op!r} is nothing that can be done about an index; there are {', '.join(OPS)}")
    _check_name(name, kind)
    if has_expression and not is_expression(name, kind):
        raise OptionError(f"only an index on an expression has an expression and options, and {name} is of the type {kind}")


def _check_plan(data: TableState, name: str, op: str, planned: Instant | None, *, is_other: bool) -> None:
    """Raise `OptionError` for a plan that builds the index otherwise, and for a run without a plan."""
    if is_other:
        raise OptionError(
            f"{data.config.name} has a plan to build the index {name} otherwise, {planned}; run that one, or drop the index first",
            table=data.config.name,
        )
    if op == RUN and planned is None:
        raise OptionError(f"{data.config.name} has no plan to build the index {name}; schedule it first", table=data.config.name)


def _is_other(define: Sequence[IndexDefinition], planned: IndexDefinition | None) -> bool:
    """True if the one definition asked for is about another column or function than the planned one."""
    about = [(one.index_type, one.source_fields, one.function) for one in (*define, planned) if one is not None]
    return planned is not None and len(set(about)) > 1


def _partition(name: str, kind: str) -> str:
    if is_expression(name, kind):
        return f"{EXPRESSION_INDEX}{name}"
    return f"{SECONDARY_INDEX}{name}" if kind == SECONDARY else name


def _run(storage: Storage, planned: Instant, before: TableState, *, is_new: bool, lock_timeout_ms: int) -> tuple[str, ...]:
    """Run a plan; returns what was built. A plan that was made for this run goes if the run fails."""
    try:
        indexing.run(storage, planned.requested_time, lock_timeout_ms=lock_timeout_ms)
    except CommitOutcomeUnknownError:
        raise
    except LakehouseError:
        if is_new:
            kept = stored_definitions(before)
            indexing.unschedule(storage, planned.requested_time, lock_timeout_ms=lock_timeout_ms, kept=kept)
        raise
    after = TableState.load(storage).config.metadata_partitions
    return tuple(name for name in after if name not in before.config.metadata_partitions)


def drop(storage: Storage, name: str, *, if_exists: bool = False, dry_run: bool = False, lock_timeout_ms: int) -> IndexChange:
    """Drop an index by its name or its partition; `column_stats` takes `partition_stats` along. One that is planned goes from the timeline,
    with all that its plan has.

    Raises `OptionError` if there is none of this name, or a secondary index needs it, and as `building.drop`.
    """
    data = TableState.load(storage)
    there = _built(data)
    found = [one for one in there if name in (one.name, one.partition)]
    planned = None if found else _planned(data, name)
    if planned is not None:
        return _drop_plan(data, name, planned, dry_run=dry_run, lock_timeout_ms=lock_timeout_ms)
    if not found:
        if if_exists:
            return IndexChange(index=name, dry_run=dry_run)
        named = ", ".join(one.name for one in there) or "none"
        raise OptionError(f"{data.config.name} has no index {name!r} to drop; it has {named}", table=data.config.name)
    if len(found) > 1:
        named = ", ".join(one.partition for one in found)
        raise OptionError(f"{data.config.name} has several indexes {name!r}; name the partition: {named}", table=data.config.name)
    (index,) = found
    check_not_needed(data, [index.partition])
    if dry_run:
        also = [PARTITION_STATS] if index.partition == COLUMN_STATS and PARTITION_STATS in data.config.metadata_partitions else []
        return IndexChange(index=index.name, dropped=(index.partition, *also), dry_run=True)
    done = building.drop(storage, [index.partition], lock_timeout_ms=lock_timeout_ms)
    return IndexChange(index=index.name, dropped=done.dropped)


def _planned(data: TableState, name: str) -> Instant | None:
    """The plan to build an index of that name, or partition."""
    partitions = (name, *(f"{prefix}{name}" for prefix in _PREFIXES))
    return next((found for one in partitions if (found := indexing.planned_build(data, one)) is not None), None)


def _drop_plan(data: TableState, name: str, planned: Instant, *, dry_run: bool, lock_timeout_ms: int) -> IndexChange:
    if dry_run:
        return IndexChange(index=name, instant=planned.requested_time, dry_run=True)
    indexing.unschedule(data.storage, planned.requested_time, lock_timeout_ms=lock_timeout_ms)
    return IndexChange(index=name, instant=planned.requested_time)


def _check_name(name: str, kind: str) -> None:
    if kind not in TYPES:
        raise OptionError(f"{kind!r} is no type of index; there are {', '.join(TYPES)}")
    if kind in (RECORD_INDEX, PARTITION_STATS) and name != kind:
        raise OptionError(f"a table has one {kind}, which Hudi calls {kind}: give the index that name instead of {name!r}")
    if not _NAME.fullmatch(name):
        raise OptionError(f"{name!r} cannot be the name of an index: letters, digits and underscores can, as it names a folder")
    if name in _ONE_EACH and name != kind:
        raise OptionError(f"{name} is the name of the one index of that type; give the {kind} another name")


def _definitions(data: TableState, name: str, columns: Sequence[str] | None) -> list[IndexDefinition]:
    """Definition that the index is built by; none if the index chooses its columns itself. Raises `OptionError` for other columns.

    `name` is that of the partition.
    """
    config = data.config
    if name.startswith(SECONDARY_INDEX):
        if columns is None or len(columns) != 1:
            raise OptionError(f"a secondary index is about one column; {name} of {config.name} is given {len(columns or ())}")
        _check_known(data, columns)
        return [secondary_index_definition(name, columns[0], metadata_form(config.version).statistics_version)]
    if columns is None:
        return []
    if name != COLUMN_STATS:
        own = config.record_key_fields
        if name == PARTITION_STATS or sorted(columns) != sorted(own):
            what = "the columns of column_stats" if name == PARTITION_STATS else f"the record key, {', '.join(own) or 'generated'}"
            raise OptionError(f"{name} of {config.name} is about {what}; leave the columns out", table=config.name)
        return []
    form = metadata_form(config.version)
    if form.every_column:
        raise OptionError(
            f"{config.name} has version {int(config.version)}, in which {COLUMN_STATS} has every column that can have statistics (Hudi 0.15"
            " takes the others for all null); leave the columns out, or upgrade the table",
            table=config.name,
        )
    _check_known(data, columns)
    having = indexed(data, columns)
    without = [column for column in columns if column not in having.schema.names]
    if without:
        raise OptionError(f"the column {without[0]} of {config.name} has a type without statistics; leave it out", column=without[0])
    return [column_stats_definition([*form.indexed_meta_columns, *dict.fromkeys(columns)], form.statistics_version, chosen=True)]


def _check_known(data: TableState, columns: Sequence[str]) -> None:
    known, name = table_schema(data).names, data.config.name
    missing = [column for column in columns if column not in known]
    if missing:
        raise OptionError(f"{name} has no top-level column {missing[0]!r}; it has {', '.join(known)}", column=missing[0])
