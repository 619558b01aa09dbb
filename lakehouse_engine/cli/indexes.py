"""Commands about the indexes of a table by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

import click

from lakehouse_engine.cli.shared import dry_run_option, key_values, show_rows, with_settings
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.progress import working
from lakehouse_engine.cli.terminal.results import show_result
from lakehouse_engine.cli.work import open_services
from lakehouse_engine.services.metadata.indexes import OPS as INDEX_OPS

_COLUMNS = ("name", "type", "columns", "partition", "stored_as", "options", "planned")


@click.group()
def index() -> None:
    """Create, drop and list the indexes of a table, which are in its metadata table; rebuild an HBASE index."""


def _split(context: click.Context, parameter: click.Parameter, given: str | None) -> list[str] | None:
    names = None if given is None else [name.strip() for name in given.split(",") if name.strip()]
    if names == []:
        raise click.BadParameter("it names no column; leave the option out for the default")
    return names


@index.command()
@click.argument("table")
@click.argument("name")
@click.option("--type", metavar="TYPE", help="record_index, column_stats, bloom_filters, secondary_index, expr_index.")
@click.option("--columns", callback=_split, metavar="NAMES", help="Columns that it is about, separated by commas.")
@click.option("--expression", metavar="FUNCTION", help="Function of an index on an expression, such as from_unixtime.")
@click.option("--with", "options", multiple=True, callback=key_values, metavar="KEY=VALUE", help="What it is given: format=yyyy-MM-dd.")
@click.option("--op", type=click.Choice(INDEX_OPS), default="schedule_and_run", show_default=True, help="Plan it, run the plan, or both.")
@click.option("--if-not-exists", is_flag=True, help="Leave an index of that name as it is.")
@dry_run_option
@with_settings
def create(
    settings: Settings,
    table: str,
    name: str,
    type: str | None,
    columns: list[str] | None,
    expression: str | None,
    options: dict[str, str],
    op: str,
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Build the index NAME from the data files, while writers go on. Writes keep it up."""
    services = open_services(settings, table)
    with working(f"building the index {name} of {table}"):
        result = services.create_index(
            name,
            type=type,
            columns=columns,
            expression=expression,
            options=options,
            op=op,
            if_not_exists=if_not_exists,
            dry_run=dry_run,
        )
    show_result(settings, result)


@index.command()
@click.argument("table")
@click.argument("name")
@click.option("--if-exists", is_flag=True, help="Do nothing if there is no index of that name.")
@dry_run_option
@with_settings
def drop(settings: Settings, table: str, name: str, if_exists: bool, dry_run: bool) -> None:
    """Drop the index NAME. No row is lost."""
    services = open_services(settings, table)
    with working(f"dropping the index {name} of {table}"):
        result = services.drop_index(name, if_exists=if_exists, dry_run=dry_run)
    show_result(settings, result)


@index.command()
@click.argument("table")
@click.option("--with", "options", multiple=True, callback=key_values, metavar="KEY=VALUE", help="hoodie.index.hbase.table=keys, ...")
@with_settings
def rebuild(settings: Settings, table: str, options: dict[str, str]) -> None:
    """Put the entries of every stored key into the HBASE index, and make that the table's index."""
    services = open_services(settings, table)
    with working(f"putting the entries of {table}"):
        result = services.rebuild_hbase_index(options)
    show_result(settings, result)


@index.command(name="list")
@click.argument("table")
@with_settings
def list_indexes(settings: Settings, table: str) -> None:
    """List the indexes."""
    found = open_services(settings, table).indexes()
    shown = dict if settings.as_json else _shown
    rows = [{**asdict(one), "columns": list(one.columns), "options": shown(one.options)} for one in found]
    show_rows(settings, rows, _COLUMNS)


def _shown(options: Mapping[str, str]) -> str:
    return json.dumps(dict(options)) if options else ""
