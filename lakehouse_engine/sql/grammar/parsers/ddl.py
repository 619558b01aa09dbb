"""Definitions: schemas, tables, views, columns, properties, comments. Each function continues after the verb."""

from __future__ import annotations

from lakehouse_engine.sql.grammar.defaults import default_expression
from lakehouse_engine.sql.grammar.parsers.upkeep import parse_recover
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.references import Parts, plain
from lakehouse_engine.sql.grammar.statements import (
    AddColumns,
    AlterColumn,
    ColumnDefinition,
    Comment,
    CommentOnSchema,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    DropColumns,
    DropPartitions,
    DropSchema,
    DropTable,
    DropView,
    Properties,
    RenameColumn,
    RenameRelation,
    SetDefault,
    SetProperties,
    Statement,
    UnsetProperties,
    Value,
)

ENGINE_PROVIDERS = ("HUDI", "ORG.APACHE.HUDI", "LAKEHOUSE")
SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")


def parse_create_schema(reader: StatementReader) -> Statement:
    """`CREATE SCHEMA [IF NOT EXISTS] name [COMMENT '...']`"""
    reader.expect("CREATE")
    reader.accept_any(SCHEMA_WORDS)
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    schema = reader.identifier("a schema's name")
    comment = reader.string("a comment") if reader.accept("COMMENT") else None
    reader.finish()
    return CreateSchema(schema, if_not_exists, comment)


def parse_drop_schema(reader: StatementReader) -> Statement:
    """`DROP SCHEMA [IF EXISTS] name [RESTRICT | CASCADE]`"""
    reader.expect("DROP")
    reader.accept_any(SCHEMA_WORDS)
    if_exists = reader.accept("IF", "EXISTS")
    schema = reader.identifier("a schema's name")
    cascade = reader.accept_any(("CASCADE", "RESTRICT")) == "CASCADE"
    reader.finish()
    return DropSchema(schema, if_exists, cascade)


def parse_create_view(reader: StatementReader) -> Statement:
    """`CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(column [COMMENT '...'], ...)] [COMMENT '...'] AS query`"""
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    reader.expect("VIEW")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.parts()
    columns = _view_columns(reader) if reader.keyword() == "(" else ()
    comment: str | None = None
    while not reader.accept("AS"):
        if reader.accept("COMMENT"):
            comment = reader.string("a comment")
        elif reader.accept("TBLPROPERTIES"):
            reader.properties()
        else:
            raise reader.refusal("AS, COMMENT or TBLPROPERTIES of a view")
    return CreateView(name, reader.query(), columns, comment, or_replace, if_not_exists)


def _view_columns(reader: StatementReader) -> tuple[tuple[str, str | None], ...]:
    reader.expect("(")
    columns: list[tuple[str, str | None]] = []
    while not columns or reader.accept(","):
        name = reader.identifier()
        columns.append((name, reader.string("a comment") if reader.accept("COMMENT") else None))
    reader.expect(")")
    return tuple(columns)


def parse_create_table_like(reader: StatementReader) -> Statement:
    """`CREATE TABLE [IF NOT EXISTS] name LIKE source [USING provider] [TBLPROPERTIES (..)]`"""
    reader.expect("CREATE", "TABLE")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.parts()
    reader.expect("LIKE")
    source = reader.parts()
    properties: Properties = ()
    while not reader.done:
        if reader.accept("USING"):
            if ".".join(reader.parts("a provider")).upper() not in ENGINE_PROVIDERS:
                raise reader.refusal("USING hudi of a table like one of the engine's")
        elif reader.accept("TBLPROPERTIES"):
            properties = reader.properties()
        else:
            raise reader.refusal("USING or TBLPROPERTIES of CREATE TABLE ... LIKE")
    return CreateTableLike(name, source, properties, if_not_exists)


def parse_drop(reader: StatementReader) -> Statement:
    """`DROP (TABLE | VIEW) [IF EXISTS] name [PURGE]`"""
    reader.expect("DROP")
    kind = reader.accept_any(("TABLE", "VIEW"))
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.parts()
    if kind == "TABLE":
        reader.accept("PURGE")
    reader.finish()
    return DropTable(name, if_exists) if kind == "TABLE" else DropView(name, if_exists)


class TableClauses:
    """Clauses read so far after `CREATE TABLE name`."""

    def __init__(self) -> None:
        self.columns: list[ColumnDefinition] = []
        self.primary_key: tuple[str, ...] = ()
        self.partition_by: tuple[str, ...] = ()
        self.properties: Properties = ()
        self.comment: str | None = None


def parse_create_table(reader: StatementReader) -> Statement:
    """`CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [(columns)] [clauses] [AS query]`, also `REPLACE TABLE`."""
    replaces = reader.accept("REPLACE")
    if not replaces:
        reader.expect("CREATE")
        replaces = reader.accept("OR", "REPLACE")
    reader.expect("TABLE")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.parts()
    clauses = TableClauses()
    if reader.keyword() == "(" and reader.keyword(1) not in ("SELECT", "WITH"):
        _table_columns(reader, clauses)
    while not reader.done and reader.keyword() not in ("AS", "SELECT", "WITH", "("):
        table_clause(reader, clauses)
    reader.accept("AS")
    query = None if reader.done else reader.query()
    return CreateTable(
        name,
        tuple(clauses.columns),
        clauses.partition_by,
        clauses.primary_key,
        clauses.properties,
        clauses.comment,
        query,
        if_not_exists,
        replaces,
    )


def _table_columns(reader: StatementReader, clauses: TableClauses) -> None:
    reader.expect("(")
    first = True
    while first or reader.accept(","):
        first = False
        if reader.accept("CONSTRAINT"):
            reader.identifier("a constraint's name")
        if reader.accept("PRIMARY", "KEY"):
            clauses.primary_key = reader.identifiers()
            _constraint_words(reader)
        elif reader.keyword() in ("CHECK", "FOREIGN", "UNIQUE") and reader.keyword(1) in ("(", "KEY"):
            raise reader.refusal(f"a {reader.keyword()} constraint")
        else:
            column = reader.column()
            clauses.columns.append(column)
            if reader.accept("PRIMARY", "KEY"):
                clauses.primary_key = (*clauses.primary_key, column.name)
                _constraint_words(reader)
    reader.expect(")")


def _constraint_words(reader: StatementReader) -> None:
    while reader.accept("NOT", "ENFORCED") or reader.accept_any(("RELY", "NORELY", "ENFORCED")):
        pass


def table_clause(reader: StatementReader, clauses: TableClauses) -> None:
    """The next clause between a table's name and its query."""
    if reader.accept("USING"):
        provider = ".".join(reader.parts("a provider"))
        if provider.upper() not in ENGINE_PROVIDERS:
            raise reader.refusal(f"USING {provider}")
    elif reader.accept("PARTITIONED", "BY"):
        _partitioned_by(reader, clauses)
    elif reader.accept_any(("TBLPROPERTIES", "OPTIONS")):
        clauses.properties += reader.properties()
    elif reader.accept("COMMENT"):
        clauses.comment = reader.string("a comment")
    else:
        raise reader.refusal(f"the clause {reader.keyword()} of CREATE TABLE")


def _partitioned_by(reader: StatementReader, clauses: TableClauses) -> None:
    """`(day, hour)`, or Hive's form with types, which also defines the columns."""
    reader.expect("(")
    names: list[str] = []
    while not names or reader.accept(","):
        if reader.keyword(1) in (",", ")"):
            names.append(reader.identifier("a partition column"))
        elif reader.keyword(1) == "(":
            raise reader.refusal("a partition transform")
        else:
            column = reader.column()
            clauses.columns.append(column)
            names.append(column.name)
    reader.expect(")")
    clauses.partition_by = tuple(names)


def parse_alter(reader: StatementReader) -> Statement:
    """`ALTER TABLE name ...` and `ALTER VIEW name (RENAME TO name | AS query)`"""
    reader.expect("ALTER")
    kind = reader.accept_any(("TABLE", "VIEW"))
    reader.accept("IF", "EXISTS")
    name = reader.parts()
    if reader.accept("RENAME", "TO"):
        new_name = reader.parts()
        reader.finish()
        return RenameRelation(name, new_name, view=kind == "VIEW")
    if kind == "VIEW":
        reader.expect("AS")
        return CreateView(name, reader.query(), or_replace=True)
    statement = _alter_table(reader, name)
    reader.finish()
    return statement


def _alter_table(reader: StatementReader, name: Parts) -> Statement:
    if reader.accept("RENAME", "COLUMN"):
        column = reader.path()
        reader.expect("TO")
        return RenameColumn(name, column, reader.identifier())
    if reader.accept("RECOVER", "PARTITIONS"):
        return parse_recover(name)
    if reader.accept("SET", "TBLPROPERTIES"):
        return SetProperties(name, reader.properties())
    if reader.accept("UNSET", "TBLPROPERTIES"):
        reader.accept("IF", "EXISTS")
        return UnsetProperties(name, reader.keys())
    if reader.keyword() == "ADD" and reader.keyword(1) in ("COLUMN", "COLUMNS"):
        return _add_columns(reader, name)
    if reader.accept("DROP"):
        return _drop_from_table(reader, name)
    if reader.accept("ALTER"):
        reader.accept("COLUMN")
        return _alter_column(reader, name, reader.path())
    if reader.accept("CHANGE"):
        reader.accept("COLUMN")
        return _change_column(reader, name)
    raise reader.refusal("RENAME, ADD COLUMNS, DROP COLUMNS, ALTER COLUMN or SET TBLPROPERTIES")


def _add_columns(reader: StatementReader, name: Parts) -> Statement:
    reader.at += 2
    grouped = reader.accept("(")
    columns = [reader.column(added=True)]
    while reader.accept(","):
        columns.append(reader.column(added=True))
    if grouped:
        reader.expect(")")
    return AddColumns(name, tuple(columns))


def _drop_from_table(reader: StatementReader, name: Parts) -> Statement:
    if reader.accept_any(("COLUMN", "COLUMNS")):
        if_exists = reader.accept("IF", "EXISTS")
        grouped = reader.accept("(")
        names = [reader.path()]
        while reader.accept(","):
            names.append(reader.path())
        if grouped:
            reader.expect(")")
        return DropColumns(name, tuple(names), if_exists)
    if_exists = reader.accept("IF", "EXISTS")
    partitions: list[tuple[tuple[str, Value], ...]] = []
    while not partitions or reader.accept(","):
        reader.expect("PARTITION")
        static, dynamic = reader.partition()
        if dynamic:
            raise reader.refusal("a value for each partition column")
        partitions.append(static)
    reader.accept("PURGE")
    return DropPartitions(name, tuple(partitions), if_exists)


def _change_column(reader: StatementReader, name: Parts) -> Statement:
    """Hive's form: `column column type [COMMENT '...'] [FIRST | AFTER column]`; also what ALTER COLUMN takes."""
    column = reader.path()
    if reader.keyword() in ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER") and reader.keyword() != column.upper():
        return _alter_column(reader, name, column)
    new = reader.column(added=True)
    if new.name.lower() != column.lower():
        raise reader.refusal(f"CHANGE COLUMN with another name ({new.name}): RENAME COLUMN {column} TO {new.name}")
    if not new.nullable:
        raise reader.refusal(f"NOT NULL in CHANGE COLUMN: ALTER COLUMN {column} SET NOT NULL")
    if new.default is not None:
        raise reader.refusal(f"DEFAULT in CHANGE COLUMN: ALTER COLUMN {column} SET DEFAULT {new.default}")
    if new.generated is not None:
        raise reader.refusal(f"GENERATED in CHANGE COLUMN: CREATE OR REPLACE TABLE says what the column {column} is computed as")
    return AlterColumn(name, column, type=new.type, comment=new.comment, place=new.place)


def _alter_column(reader: StatementReader, name: Parts, column: str) -> Statement:
    place = reader.place()
    if place is not None:
        return AlterColumn(name, column, place=place)
    if reader.accept("TYPE"):
        return AlterColumn(name, column, type=reader.type_text())
    if reader.accept("COMMENT"):
        return AlterColumn(name, column, comment=reader.string("a comment"))
    if reader.accept("DROP", "NOT", "NULL"):
        return AlterColumn(name, column, nullable=True)
    if reader.accept("SET", "NOT", "NULL"):
        return AlterColumn(name, column, nullable=False)
    if reader.accept("DROP", "DEFAULT"):
        return SetDefault(name, column, None)
    if reader.accept("SET", "DEFAULT"):
        return SetDefault(name, column, default_expression(reader))
    raise reader.refusal("TYPE, COMMENT, FIRST, AFTER, or SET | DROP of NOT NULL or DEFAULT of a column")


def parse_comment(reader: StatementReader) -> Statement:
    """`COMMENT ON (TABLE | VIEW | COLUMN | SCHEMA | DATABASE | NAMESPACE) name IS ('...' | NULL)`"""
    reader.expect("COMMENT", "ON")
    kind = reader.accept_any(("TABLE", "VIEW", "COLUMN", *SCHEMA_WORDS))
    name = plain(reader.parts())
    reader.expect("IS")
    comment = "" if reader.accept("NULL") else reader.string("a comment")
    reader.finish()
    if kind in SCHEMA_WORDS:
        return CommentOnSchema(name[-1], comment)
    return Comment(name[:-1], comment, name[-1]) if kind == "COLUMN" else Comment(name, comment)
