"""Selects the function that runs a statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lakehouse_engine.commit.expected import repeated
from lakehouse_engine.spark.tasks.task_errors import told_as_raised
from lakehouse_engine.sql.grammar import statements as s
from lakehouse_engine.sql.grammar.identifiers import with_names
from lakehouse_engine.sql.grammar.markers import with_named_markers
from lakehouse_engine.sql.router import route
from lakehouse_engine.statements import columns, defaults, definitions, materialized, procedures, upkeep
from lakehouse_engine.statements.answers import shown
from lakehouse_engine.statements.answers.explain import explain
from lakehouse_engine.statements.clone import clone_table
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.statements.elsewhere import sent_there
from lakehouse_engine.statements.providers import check_provider
from lakehouse_engine.statements.rows import changes
from lakehouse_engine.statements.rows.merge import merge

HANDLERS: dict[type[Any], Callable[[Execution, Any], Any]] = {
    s.Query: lambda run, statement: run.answer(statement.text),
    s.Passthrough: lambda run, statement: run.run(statement.text),
    s.Explain: explain,
    s.CreateSchema: definitions.create_schema,
    s.DropSchema: definitions.drop_schema,
    s.UseSchema: definitions.use_schema,
    s.CreateView: definitions.create_view,
    s.DropView: definitions.drop_view,
    s.CreateMaterializedView: materialized.create_materialized_view,
    s.AlterMaterializedView: materialized.alter_materialized_view,
    s.RefreshMaterializedView: materialized.refresh_materialized_view,
    s.DropMaterializedView: materialized.drop_materialized_view,
    s.CreateTable: definitions.create_table,
    s.CreateTableLike: definitions.create_table_like,
    s.CloneTable: clone_table,
    s.DropTable: definitions.drop_table,
    s.RenameRelation: definitions.rename_relation,
    s.AddColumns: columns.add_columns,
    s.AlterColumn: columns.alter_column,
    s.SetDefault: defaults.set_default,
    s.DropColumns: columns.drop_columns,
    s.RenameColumn: columns.rename_column,
    s.SetProperties: definitions.set_table_properties,
    s.UnsetProperties: definitions.unset_table_properties,
    s.Comment: definitions.comment_on,
    s.CommentOnSchema: definitions.comment_on_schema,
    s.Insert: changes.insert,
    s.MultiInsert: changes.multi_insert,
    s.Delete: changes.delete,
    s.Update: changes.update,
    s.Merge: merge,
    s.Truncate: changes.truncate,
    s.DropPartitions: changes.drop_partitions,
    s.ShowSchemas: shown.show_schemas,
    s.ShowTables: shown.show_tables,
    s.ShowColumns: shown.show_columns,
    s.ShowProperties: shown.show_properties,
    s.ShowPartitions: shown.show_partitions,
    s.ShowCreateTable: shown.show_create_table,
    s.Describe: shown.describe,
    s.DescribeHistory: shown.describe_history,
    s.DescribeSchema: shown.describe_schema,
    s.Refresh: shown.refresh,
    s.NothingToDo: upkeep.nothing_to_do,
    s.RestoreTable: upkeep.restore_table,
    s.ShowIndexes: upkeep.show_indexes,
    s.CreateIndex: upkeep.create_index,
    s.DropIndex: upkeep.drop_index,
    s.Call: procedures.call,
}


def execute(run: Execution, text: str) -> Any:
    """Run one statement: a DataFrame for rows, a `WriteResult` for a write, None otherwise.

    A write that reads tables is repeated on newer states if a commit came in between; in the end it raises `ChangedSinceReadError`. Engine
    errors that executors meet while a write reads are raised unchanged. Raises `SqlError` for parameters that are no values.
    """
    text = with_names(text)
    if run.args is not None and not isinstance(run.args, Mapping):
        text, args = with_named_markers(text, run.args)
        run = replace(run, args=args)
    run, statement = sent_there(run, route(text, run.pins.knows))
    check_provider(run, statement)
    handler = HANDLERS[type(statement)]
    with told_as_raised():
        if not run.repeats:
            return handler(run, statement)
        return repeated(lambda: handler(replace(run, reads=run.pins.reads()), statement), run.repeats)
