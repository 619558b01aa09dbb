from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.checksum import checksum_of
from benchmarks.data import SCHEMA, key_text, make_rows, prepare, read_tables
from benchmarks.queries import COLUMNS, SPARK_SCHEMA, WIDE, plain


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("bench"), 2_000)


def load(prepared, name):
    return pa.concat_tables(read_tables([str(path) for path in sorted((prepared.folder / name).glob("*.parquet"))]))


def test_the_same_arguments_make_the_same_rows():
    first, second = (make_rows(np.arange(100), seed=3, time_us=10**15) for _ in range(2))
    assert first.equals(second)
    assert not first.drop(["id"]).equals(make_rows(np.arange(100), seed=4, time_us=10**15).drop(["id"]))


def test_rows_have_eleven_columns_and_keys_of_twenty_characters(prepared):
    table = load(prepared, "base")
    assert table.schema == SCHEMA
    assert tuple(SCHEMA.names) == COLUMNS
    assert len(SCHEMA) == 11
    assert tuple(part.split()[0] for part in SPARK_SCHEMA.split(", ")) == COLUMNS
    assert pc.unique(pc.utf8_length(table["id"])).to_pylist() == [20]
    assert key_text(np.array([42])).to_pylist() == ["key-0000000000000042"]


@pytest.mark.parametrize(("name", "count"), [("updates-1", 20), ("updates-10", 200)])
def test_update_batches_replace_distinct_existing_keys_with_later_rows(prepared, name, count):
    base, updates = load(prepared, "base"), load(prepared, name)
    assert updates.num_rows == count == len(pc.unique(updates["id"]))
    assert pc.all(pc.is_in(updates["id"], base["id"].combine_chunks())).as_py()
    assert pc.min(updates["updated_at"]).as_py() > pc.max(base["updated_at"]).as_py()


@pytest.mark.parametrize("name", ["updates-1", "updates-10"])
def test_expected_checksum_after_a_batch_is_that_of_the_merged_rows(prepared, name):
    base, updates = load(prepared, "base"), load(prepared, name)
    kept = base.filter(pc.invert(pc.is_in(base["id"], updates["id"].combine_chunks())))
    assert checksum_of([kept, updates], SCHEMA) == prepared.checksums[name]
    assert checksum_of([base], SCHEMA) == prepared.checksums["base"] != prepared.checksums[name]


def test_expected_scans_are_the_aggregates_of_the_rows(prepared):
    base = load(prepared, "base")
    kinds = {"sum": pc.sum, "max": pc.max, "length": lambda column: pc.sum(pc.utf8_length(column))}
    assert prepared.scans["wide"] == [plain(kinds[kind](base[name]).as_py()) for kind, name in WIDE]


def test_sizes_without_an_update_row_are_refused(tmp_path):
    with pytest.raises(ValueError, match="99 rows"):
        prepare(tmp_path, 99)


def test_prepared_data_is_made_once_and_again_for_another_generator(tmp_path):
    file = prepare(tmp_path, 100).folder / "base" / "part-00000.parquet"
    made = file.stat().st_mtime_ns
    assert prepare(tmp_path, 100).rows == 100
    assert file.stat().st_mtime_ns == made
    answers = tmp_path / "rows-100" / "expected.json"
    answers.write_text(json.dumps(json.loads(answers.read_text()) | {"generator": 0}))
    prepare(tmp_path, 100)
    assert json.loads(answers.read_text())["generator"] != 0
    assert pq.read_metadata(file).num_rows == 100
