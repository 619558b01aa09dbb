"""Parsed statements. Queries inside are the user's own text, to be bound and given to Spark.

Names (`Parts`) are as written, without a leading `spark_catalog`; one part if the user gave no schema. Conditions, expressions, types and
queries are slices of the statement's text, never printed from a parse tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from lakehouse_engine.sql.grammar.references import Parts

Value = str | int | float | Decimal | bool | None
"""A literal of a property, an argument, or a partition (None there: a dynamic one)."""
Properties = tuple[tuple[str, str], ...]
"""Key and value pairs in the order written."""


@dataclass(frozen=True, slots=True)
class Passthrough:
    """Spark runs `text` unchanged: it touches nothing of the engine's."""

    text: str


@dataclass(frozen=True, slots=True)
class Query:
    """Spark runs `text` after its reads are bound to snapshots; what it writes, if anything, is not the engine's."""

    text: str


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a query; `text` is the whole statement."""

    text: str


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """`CREATE SCHEMA`."""

    schema: str
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class DropSchema:
    """`DROP SCHEMA`."""

    schema: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class UseSchema:
    """`USE schema`."""

    schema: str


@dataclass(frozen=True, slots=True)
class DescribeSchema:
    """`DESCRIBE SCHEMA`."""

    schema: str


@dataclass(frozen=True, slots=True)
class ShowSchemas:
    """`pattern` as in LIKE of SHOW: `*` for any text, `|` between alternatives."""

    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """`views`: SHOW VIEWS; `extended`: SHOW TABLE EXTENDED. `schema` is None for the current one."""

    schema: str | None = None
    pattern: str | None = None
    views: bool = False
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """`SHOW COLUMNS`."""

    name: Parts


@dataclass(frozen=True, slots=True)
class ShowProperties:
    """`SHOW TBLPROPERTIES`; `key` None: all."""

    name: Parts
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """`SHOW CREATE TABLE`."""

    name: Parts


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """`SHOW PARTITIONS`."""

    name: Parts


@dataclass(frozen=True, slots=True)
class Describe:
    """`column`: only that one. `as_json`: DESCRIBE ... EXTENDED ... AS JSON."""

    name: Parts
    extended: bool = False
    column: str | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """`limit`: that many of the newest instants; None for the whole active timeline."""

    name: Parts
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Refresh:
    """REFRESH TABLE: nothing to do, because each statement sees the newest commit."""

    name: Parts


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """A statement that other engines need and this one does not; `because` is the reason."""

    statement: str
    name: Parts
    because: str


@dataclass(frozen=True, slots=True)
class RestoreTable:
    """`to` is as in AS OF."""

    name: Parts
    to: str


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """`SHOW INDEXES`."""

    name: Parts


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """`CREATE INDEX`. `kind` None: what the index's name says; `options` are those of an expression."""

    name: Parts
    index: str
    kind: str | None = None
    columns: tuple[str, ...] | None = None
    options: Properties = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """`DROP INDEX`."""

    name: Parts
    index: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """`columns` are (name, comment) pairs."""

    name: Parts
    query: str
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateMaterializedView:
    """`table`: stores the rows of its query. `if_not_exists` and `or_replace` as for a table."""

    table: CreateTable


@dataclass(frozen=True, slots=True)
class AlterMaterializedView:
    """Replaces its query and rows."""

    name: Parts
    query: str


@dataclass(frozen=True, slots=True)
class RefreshMaterializedView:
    """`full`: refresh even if nothing that it reads has changed."""

    name: Parts
    full: bool = False


@dataclass(frozen=True, slots=True)
class DropMaterializedView:
    """`DROP MATERIALIZED VIEW`."""

    name: Parts
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropView:
    """`DROP VIEW`."""

    name: Parts
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """FIRST among its siblings, or AFTER a named one."""

    after: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`type` is Spark SQL type text. In ADD COLUMN, `name` may be a path (see `AlterColumn`), and `place` is its position."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    place: Place | None = None
    default: str | None = None
    generated: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`partition_columns` may define columns (then they have a type and are not in `columns`). `primary_key` comes from a constraint."""

    name: Parts
    columns: tuple[ColumnDefinition, ...] = ()
    partition_by: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    properties: Properties = ()
    comment: str | None = None
    query: str | None = None
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateTableLike:
    """An empty table with `source`'s columns, keys, partitions, type and options; `properties` as in CREATE TABLE override them."""

    name: Parts
    source: Parts
    properties: Properties = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CloneTable:
    """`files` as in `Lakehouse.clone`; `as_of` is the literal after AS OF, if any; `is_typed` for `TIMESTAMP '...'`."""

    name: Parts
    source: Parts
    files: str = "auto"
    as_of: str | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    is_typed: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """`DROP TABLE`."""

    name: Parts
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """`partition` empty: the whole table."""

    name: Parts
    partition: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Insert:
    """`columns`: the explicit list; empty for all in table order. `partition`: (column, value); dynamic ones are in `dynamic`.

    `replaced`: condition of REPLACE WHERE.
    """

    name: Parts
    query: str
    columns: tuple[str, ...] = ()
    overwrite: bool = False
    partition: tuple[tuple[str, Value], ...] = ()
    dynamic: tuple[str, ...] = ()
    by_name: bool = False
    replaced: str | None = None


@dataclass(frozen=True, slots=True)
class MultiInsert:
    """`FROM source INSERT ... INSERT ...`: each insert's query includes the source."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE FROM`; `condition` None: all rows."""

    name: Parts
    alias: str | None = None
    condition: str | None = None


Assignments = tuple[tuple[str, str], ...]
"""Column name, or dotted path to a nested field, and expression text."""


@dataclass(frozen=True, slots=True)
class Update:
    """`UPDATE`; `condition` None: all rows."""

    name: Parts
    assignments: Assignments
    alias: str | None = None
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`when` is `matched`, `not_matched` or `not_matched_by_source`; `action` is `update`, `insert` or `delete`.

    `assignments` is None for `*`.
    """

    when: str
    action: str
    condition: str | None = None
    assignments: Assignments | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """`source` is a relation's text or a query in parentheses, as written, without its alias."""

    name: Parts
    source: str
    condition: str
    clauses: tuple[MergeClause, ...]
    alias: str | None = None
    source_alias: str | None = None
    schema_evolution: bool = False


@dataclass(frozen=True, slots=True)
class RenameRelation:
    """`new_name` of one part stays in the schema of `name`."""

    name: Parts
    new_name: Parts
    view: bool = False


@dataclass(frozen=True, slots=True)
class AddColumns:
    """`ALTER TABLE ... ADD COLUMN`."""

    name: Parts
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class DropColumns:
    """`ALTER TABLE ... DROP COLUMN`."""

    name: Parts
    columns: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """`ALTER TABLE ... RENAME COLUMN`."""

    name: Parts
    column: str
    new_name: str


@dataclass(frozen=True, slots=True)
class AlterColumn:
    """None keeps a setting. `column` may be a dotted path to a nested field (names have no dots)."""

    name: Parts
    column: str
    type: str | None = None
    comment: str | None = None
    nullable: bool | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN ... SET DEFAULT; `default` is None for DROP DEFAULT."""

    name: Parts
    column: str
    default: str | None


@dataclass(frozen=True, slots=True)
class SetProperties:
    """`ALTER TABLE ... SET TBLPROPERTIES`."""

    name: Parts
    properties: Properties


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """`ALTER TABLE ... UNSET TBLPROPERTIES`."""

    name: Parts
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropPartitions:
    """`ALTER TABLE ... DROP PARTITION`."""

    name: Parts
    partitions: tuple[tuple[tuple[str, Value], ...], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON TABLE | VIEW | COLUMN. An empty text removes it."""

    name: Parts
    comment: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class CommentOnSchema:
    """An empty text removes it."""

    schema: str
    comment: str


@dataclass(frozen=True, slots=True)
class Call:
    """`arguments` are (name, value) pairs; a positional one has the name None. `limit`: maximum number of answer rows."""

    procedure: str
    arguments: tuple[tuple[str | None, Value], ...] = ()
    limit: int | None = None


Statement = (
    Passthrough
    | Query
    | Explain
    | CreateSchema
    | DropSchema
    | UseSchema
    | DescribeSchema
    | ShowSchemas
    | ShowTables
    | ShowColumns
    | ShowProperties
    | ShowCreateTable
    | ShowPartitions
    | Describe
    | DescribeHistory
    | Refresh
    | NothingToDo
    | RestoreTable
    | ShowIndexes
    | CreateIndex
    | DropIndex
    | CreateView
    | CreateMaterializedView
    | AlterMaterializedView
    | RefreshMaterializedView
    | DropMaterializedView
    | DropView
    | CreateTable
    | CreateTableLike
    | CloneTable
    | DropTable
    | Truncate
    | Insert
    | MultiInsert
    | Delete
    | Update
    | Merge
    | RenameRelation
    | AddColumns
    | DropColumns
    | RenameColumn
    | AlterColumn
    | SetDefault
    | SetProperties
    | UnsetProperties
    | DropPartitions
    | Comment
    | CommentOnSchema
    | Call
)
