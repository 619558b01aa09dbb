"""Commands about the warehouse as a whole."""

from __future__ import annotations

import click

from lakehouse_engine.cli.shared import show_rows, with_settings
from lakehouse_engine.cli.target import Settings


@click.command()
@click.option("--schema", "schema_name", metavar="NAME", help="Only this schema's.")
@with_settings
def tables(settings: Settings, schema_name: str | None) -> None:
    """List the tables and stored views of the warehouse."""
    catalog = settings.catalog()
    names = [(name, "table") for name in catalog.tables(schema_name)] + [(name, "view") for name in catalog.views(schema_name)]
    rows = [{"name": str(name), "schema": name.schema, "relation": name.name, "kind": kind} for name, kind in sorted(names)]
    show_rows(settings, rows, ("name", "kind"))
