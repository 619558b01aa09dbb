"""Commands about the whole warehouse."""

from __future__ import annotations

from datetime import datetime, timezone

import click

from lakehouse_engine.cli.shared import dry_run_option, show_rows, with_settings
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.storage.objects.uploads import A_DAY, clear_uploads


@click.command()
@click.option("--schema", "schema_name", metavar="NAME", help="Only this schema's.")
@with_settings
def tables(settings: Settings, schema_name: str | None) -> None:
    """List the tables and stored views of the warehouse."""
    catalog = settings.catalog()
    names = [(name, "table") for name in catalog.tables(schema_name)] + [(name, "view") for name in catalog.views(schema_name)]
    rows = [{"name": str(name), "schema": name.schema, "relation": name.name, "kind": kind} for name, kind in sorted(names)]
    show_rows(settings, rows, ("name", "kind"))


@click.command()
@click.option("--older-than-hours", type=click.IntRange(min=0), default=A_DAY, show_default=True, metavar="N", help="Begun longer ago.")
@dry_run_option
@with_settings
def abort_uploads(settings: Settings, older_than_hours: int, dry_run: bool) -> None:
    """Remove parts of files that killed writers had sent to S3; no listing shows them, and the bucket's owner pays for them."""
    found = clear_uploads(settings.catalog().storage, older_than_hours, dry_run=dry_run)
    rows = [{"path": one.path, "begun": datetime.fromtimestamp(one.begun_ms / 1000, timezone.utc).isoformat()} for one in found]
    if rows or settings.as_json:
        show_rows(settings, rows, ("path", "begun"))
    else:
        click.echo("none")
