"""Key generator of a write, in the form of the table's stored keys.

Hudi's versions and writers produce two texts for the same key in two cases, and mixing them silently makes duplicates: the key of a single
field by `ComplexKeyGenerator` (`id:17` or `17`, HUDI-7001), and timestamps (a number of microseconds, or text). No property says which.
Stored rows also show whether the properties are true at all: no upsert would find a key that they do not produce.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import LakehouseError, PartitionValueError, RecordKeyError
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import INDEX_TYPE, LOGICAL_TIMESTAMP, STORED_PREFIX
from lakehouse_engine.read.sampling import StoredSample, sample_rows
from lakehouse_engine.record.keys.key_rules import check_key_rules, contradiction, family_of, refused_write
from lakehouse_engine.record.keys.keygen import FieldKeyGenerator, KeyGenerator, PartitionField, key_generator_of, root_columns, type_of
from lakehouse_engine.view.table_state import TableState

_GENERATED = re.compile(r"[0-9]{14,17}_[0-9]+_[0-9]+")
_NUMBER = re.compile(r"-?[0-9]+")
_META_FIELDS = "hoodie.populate.meta.fields"
_BARE_KEYS = "hoodie.write.complex.keygen.new.encoding"
_PARTITIONS, _OUR_PARTITIONS = 4, 2
"""Number of sampled partitions: for a table of others, and for one of ours, which others may have written too."""


def key_generator_for(state: TableState, schema: pa.Schema, options: Mapping[str, str], *, moved: bool) -> KeyGenerator:
    """Makes keys and partition paths of a batch. `schema` has the table's user columns, `options` are the key generator's.

    `moved`: stored rows may be in another partition than their columns say. Raises `UnsupportedTableError`, before anything is written, if
    the table's properties contradict each other or stored rows, and as `key_generator_of`.
    """
    config = state.config
    check_key_rules(config, schema.names)
    generator = key_generator_of(config, options)
    roots = root_columns((*config.record_key_fields, *config.partition_fields), schema.names)
    names = [name for name in roots if name in schema.names]
    ours = INDEX_TYPE.key in config.prefixed(STORED_PREFIX)
    samples = sample_rows(state, schema, names, partitions=_OUR_PARTITIONS if ours else _PARTITIONS)
    keyed = _settled_keys(state, generator, schema, options, samples)
    return _settled_paths(config, keyed, schema, samples, moved=moved)


# keys


def _settled_keys(
    state: TableState, generator: FieldKeyGenerator, schema: pa.Schema, options: Mapping[str, str], samples: Sequence[StoredSample]
) -> FieldKeyGenerator:
    config = state.config
    forms = _key_forms(config, generator, schema, options)
    stored = [one for one in samples if RECORD_KEY in one.rows.column_names]
    for one in stored:
        _check_meta(config, one)
    if not config.populates_meta_fields:
        return forms[0]
    if not generator.record_key_fields:
        _check_generated(config, stored)
        return generator
    left = forms
    for one in stored:
        made = {form: _texts(form.record_keys, one.rows, RecordKeyError) for form in forms}
        _check_made(config, one, made)
        left = [form for form in left if all(map(_same, one.rows.column(RECORD_KEY).to_pylist(), made[form]))]
    if not left or any(_has_other_form(state, left[0], one) for one in stored):
        what = (
            f"the table has keys of {','.join(generator.record_key_fields)} in two forms (timestamps as numbers and as text, or keys with"
            " and without the field's name), as Hudi's ways of writing it differ"
        )
        raise refused_write(config, what, "copy its rows into a new table, each key once")
    return left[0]


def _key_forms(
    config: TableConfig, generator: FieldKeyGenerator, schema: pa.Schema, options: Mapping[str, str]
) -> list[FieldKeyGenerator]:
    """Every form that Hudi gives such keys, starting with the one for a table without rows."""
    kinds = [kind for field in generator.record_key_fields if (kind := type_of(schema, field)) is not None]
    both = len(generator.record_key_fields) == 1 and family_of(config.key_generator) == "ComplexKeyGenerator"
    bare = config.properties.get(_BARE_KEYS, "true").strip().lower() != "false"
    text = {**config.properties, **options}.get(LOGICAL_TIMESTAMP, "").strip().lower() == "true"
    prefixes = (not bare, bare) if both else (False,)
    texts = (text, not text) if any(pat.is_timestamp(kind) for kind in kinds) else (False,)
    return [replace(generator, prefix_single=prefix, timestamps_as_text=chosen) for prefix, chosen in product(prefixes, texts)]


def _same(stored: str | None, made: str | None) -> bool:
    """True if a stored key is the one made from its row, as far as it can be made here."""
    return made is None or stored == made


def _texts(make: Callable[[pa.Table], pa.Array], rows: pa.Table, refusal: type[LakehouseError]) -> list[str | None]:
    """Keys made from a few rows; None for a row with refused values, which other writers' tables may have."""
    try:
        return list(make(rows).to_pylist())
    except refusal:
        if rows.num_rows == 1:
            return [None]
    return [text for number in range(rows.num_rows) for text in _texts(make, rows.slice(number, 1), refusal)]


def _check_meta(config: TableConfig, sample: StoredSample) -> None:
    """Raise `UnsupportedTableError` if keys are stored and should not be, or are missing."""
    # Hudi leaves them empty, or null with its row writer.
    without = sum(not key for key in sample.rows.column(RECORD_KEY).to_pylist())
    if without != (0 if config.populates_meta_fields else sample.rows.num_rows):
        has = "rows without meta columns" if config.populates_meta_fields else "rows with meta columns"
        stated = f"{_META_FIELDS}={str(config.populates_meta_fields).lower()}"
        raise contradiction(config, f"the table has {has} ({_where(sample)}), and its properties say {stated}", _META_FIELDS)


def _check_generated(config: TableConfig, stored: Sequence[StoredSample]) -> None:
    for one in stored:
        for key in one.rows.column(RECORD_KEY).to_pylist():
            if not _GENERATED.fullmatch(key or ""):
                what = f"the properties name no record key fields, and the table has the record key {key!r} ({_where(one)})"
                raise contradiction(config, what, "hoodie.table.recordkey.fields")


def _check_made(config: TableConfig, sample: StoredSample, made: Mapping[FieldKeyGenerator, Sequence[str | None]]) -> None:
    """Raise `UnsupportedTableError` for a stored key that no form makes from its row."""
    for number, key in enumerate(sample.rows.column(RECORD_KEY).to_pylist()):
        texts = [given[number] for given in made.values()]
        if not any(_same(key, text) for text in texts):
            fields, named = ",".join(next(iter(made)).record_key_fields), config.key_generator or "no key generator"
            stored = f"the table has the record key {key!r} ({_where(sample)})"
            what = f"{stored}, for which its properties ({named} over {fields}) make {texts[0]!r}"
            raise contradiction(config, what, "hoodie.table.recordkey.fields or hoodie.table.keygenerator.class")


def _has_other_form(state: TableState, form: FieldKeyGenerator, sample: StoredSample) -> bool:
    """True if the file's least or greatest key is a timestamp in another form than in its first rows."""
    if sample.base is None or len(form.record_key_fields) != 1 or form.prefix_single:
        return False
    kind = type_of(sample.rows.schema, form.record_key_fields[0])
    if kind is None or not pat.is_timestamp(kind):
        return False
    footer = read_footer(state.storage, sample.base)
    return any(bool(_NUMBER.fullmatch(key)) is form.timestamps_as_text for key in (footer.min_key, footer.max_key) if key)


# partition paths


def _settled_paths(
    config: TableConfig, generator: FieldKeyGenerator, schema: pa.Schema, samples: Sequence[StoredSample], *, moved: bool
) -> FieldKeyGenerator:
    for form in _path_forms(generator, schema):
        if all(_in_place(form, one) for one in samples):
            return form
    for one in samples:
        _refuse_other_path(config, generator, one)
    if not moved and not any(_in_place(generator, one, some=True) for one in samples):
        raise _foreign_path(config, generator, samples[0], "")
    return generator


def _path_forms(generator: FieldKeyGenerator, schema: pa.Schema) -> list[FieldKeyGenerator]:
    def is_timestamp(field: PartitionField) -> bool:
        kind = type_of(schema, field.name) if field.moments is None else None
        return kind is not None and pat.is_timestamp(kind)

    fields = tuple(replace(field, timestamps_as_text=True) if is_timestamp(field) else field for field in generator.partitioning)
    return [generator] if fields == generator.partitioning else [generator, replace(generator, partitioning=fields)]


def _in_place(form: FieldKeyGenerator, sample: StoredSample, *, some: bool = False) -> bool:
    """True if all rows (or some) are in the partition that their columns say."""
    made = [text for text in _texts(form.partition_paths, sample.rows, PartitionValueError) if text is not None]
    hits = [text == sample.partition_path for text in made]
    return not hits or (any(hits) if some else all(hits))


def _refuse_other_path(config: TableConfig, generator: FieldKeyGenerator, sample: StoredSample) -> None:
    """A row may be in another partition than its columns say (`hoodie.simple.index.update.partition.path=false`), but never in a directory
    of another form.
    """
    if bool(sample.partition_path) is not bool(generator.partitioning):
        raise _foreign_path(config, generator, sample, "hoodie.table.partition.fields or hoodie.table.keygenerator.class")
    others = {
        "hoodie.datasource.write.hive_style_partitioning": replace(generator, hive_style=not generator.hive_style),
        "hoodie.datasource.write.partitionpath.urlencode": replace(generator, url_encode=not generator.url_encode),
    }
    for key, other in others.items():
        if _in_place(other, sample, some=True) and not _in_place(generator, sample, some=True):
            raise _foreign_path(config, generator, sample, key)


def _foreign_path(config: TableConfig, generator: FieldKeyGenerator, sample: StoredSample, correct: str) -> LakehouseError:
    made = next((text for text in _texts(generator.partition_paths, sample.rows, PartitionValueError) if text is not None), None)
    named, fields = config.key_generator or "no key generator", ",".join(generator.partition_fields) or "no partition fields"
    return contradiction(
        config,
        f"the table has rows in the directory {sample.partition_path!r}, for which its properties ({named} over {fields}) make {made!r}",
        correct or "hoodie.table.partition.fields, hoodie.table.keygenerator.class or hoodie.keygen.timebased.*",
    )


def _where(sample: StoredSample) -> str:
    return sample.base.path if sample.base is not None else f"in the logs of {sample.partition_path or 'the table'}"
