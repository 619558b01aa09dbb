"""Checks whether properties agree with stored rows; another program may have rewritten the properties."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.errors import ContradictoryPropertiesError, OptionError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.options import STORED_PREFIX, WriteOptions
from lakehouse_engine.read.pruning import has_other_writers
from lakehouse_engine.timeline.config_store import PROPERTIES
from lakehouse_engine.verify.report import Finding, FindingKind
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.key_form import key_generator_for


def check_agreement(state: TableState, *, quick: bool) -> Iterator[Finding | str]:
    """Contradictions for which a write would be refused: keys, partition paths, meta columns or file format that stored rows do not have.

    Reads a few rows of some partitions, unless `quick`. Reports none for tables that other programs write too: they may store fewer
    properties than they use.
    """
    config = state.config
    if config.base_file_format != "PARQUET":
        named = next(
            (one.base_file.name for one in state.view.latest_slices() if one.base_file and one.base_file.name.endswith(".parquet")), None
        )
        if named is not None:
            message = f"hoodie.table.base.file.format={config.base_file_format}, and the table has base files in Parquet ({named})"
            yield Finding(FindingKind.CORRUPT_PROPERTIES, PROPERTIES, message)
    if quick:
        return
    schema = table_schema(state)
    try:
        options = WriteOptions.read(config.prefixed(STORED_PREFIX))
        moved = config.rows_keep_partitions or not options.update_partition_path
        key_generator_for(state, schema, options.key_generator, moved=moved)
    except ContradictoryPropertiesError as error:
        if has_other_writers(state, state.timeline.completed().writes()):
            yield f"writes of this engine, which would be refused: {error.message}"
        else:
            yield Finding(FindingKind.CORRUPT_PROPERTIES, PROPERTIES, error.message)
    except OptionError as error:
        yield f"whether rows have the keys that the properties make: {error.message}"
