"""Finds the columns of a table, now or at an earlier instant."""

from __future__ import annotations

import pyarrow as pa

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.files.base_file import open_base_file, stored_schema
from lakehouse_engine.format.avro.avro_arrow import avro_to_arrow
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.record.merging.soft_deletes import shown_schema
from lakehouse_engine.timeline.kept import KeptCommits
from lakehouse_engine.view.table_state import TableState


def table_schema(state: TableState, as_of: str | None = None) -> pa.Schema:
    """User columns of the table now, or at the instant time `as_of`, in canonical types (Hudi `TableSchemaResolver`).

    Taken from a write that is about to be completed, if the state is of that; else from the newest completed write, not newer than `as_of`,
    whose metadata has a schema; else from the table's create schema; else
    from the newest base file; else, if `as_of` is before all that is known, from the current table. Empty if the table has none of these.
    """
    found = (_coming(state) if as_of is None else None) or _committed(state, as_of) or _created(state) or _stored(state, as_of)
    if found is None and as_of is not None:
        found = _committed(state, None) or _stored(state, None)
    return found if found is not None else pa.schema([])


def user_schema(state: TableState, as_of: str | None = None) -> pa.Schema:
    """Columns of `table_schema` that reads show, without the one that soft deletes keep."""
    return shown_schema(state.config, table_schema(state, as_of))


def _coming(state: TableState) -> pa.Schema | None:
    return _parsed(state.coming_schema, "the write under way", state) if state.coming_schema else None


def _committed(state: TableState, as_of: str | None) -> pa.Schema | None:
    savepoint = None if as_of is None else state.timeline.savepoint_at(as_of)
    if savepoint is not None and not state.timeline.writes().contains(savepoint):
        kept = KeptCommits(state.storage, state.format).metadata(savepoint)
        if kept is not None and kept.schema_json:
            return _parsed(kept.schema_json, f"the commit {as_of}", state)
    for instant in reversed(state.timeline.completed().writes().up_to(as_of).instants):
        text = state.commit_metadata(instant).schema_json
        if text:
            return _parsed(text, f"the commit {instant.requested_time}", state)
    return None


def _created(state: TableState) -> pa.Schema | None:
    text = state.config.create_schema
    return _parsed(text, "hoodie.table.create.schema", state) if text else None


def _parsed(text: str, where: str, state: TableState) -> pa.Schema:
    try:
        return avro_to_arrow(text, drop_meta=True)
    except LakehouseError as error:
        context = {**error.context, "table": state.config.name}
        raise type(error)(f"the schema in {where} cannot be used: {error.message}", **context) from error


def _stored(state: TableState, as_of: str | None) -> pa.Schema | None:
    slices = state.view.latest_slices() if as_of is None else state.view.slices_as_of(as_of)
    files = [piece.base_file for piece in slices if piece.base_file is not None]
    if not files:
        return None
    with open_base_file(state.storage, max(files, key=_age).path) as file:
        return stored_schema(file.schema_arrow)


def _age(file: BaseFile) -> tuple[str, str]:
    return file.instant_time, file.path
