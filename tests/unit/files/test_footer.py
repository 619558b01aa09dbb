from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.files.footer import BaseFileFooter, KeyRange, read_footer
from lakehouse_engine.format.bloom import build_bloom_filter
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.storage.local import LocalStorage

NAME = "2f1b3c4d-0000-4000-8000-000000000001-0_0-1-2_20240101000000000.parquet"


def footer_of(folder: Path, table: pa.Table, metadata: dict[str, str], key_column: str = RECORD_KEY) -> BaseFileFooter:
    with pq.ParquetWriter(folder / NAME, table.schema, store_schema=False) as writer:
        writer.write_table(table, row_group_size=2)
        writer.add_key_value_metadata(metadata)
    return read_footer(LocalStorage(str(folder)), NAME, key_column=key_column)


def test_keys_counts_and_row_group_bounds_are_read_from_the_footer(tmp_path: Path) -> None:
    table = pa.table({RECORD_KEY: ["b", "a", "d", "c", "é"], "x": [1, 2, 3, 4, 5]})
    footer = footer_of(tmp_path, table, {"hoodie_min_record_key": "a", "hoodie_max_record_key": "é"})
    assert (footer.num_rows, footer.min_key, footer.max_key) == (5, "a", "é")
    assert footer.row_groups == (KeyRange(2, "a", "b"), KeyRange(2, "c", "d"), KeyRange(1, "é", "é"))
    assert footer.bloom_filter() is None


def test_the_bloom_filter_is_found_under_its_old_name_too(tmp_path: Path) -> None:
    keys = pa.array(["k1", "k2"])
    text = build_bloom_filter(keys, kind="SIMPLE", entries=1000, fpp=0.001, max_entries=1000).to_base64()
    footer = footer_of(tmp_path, pa.table({RECORD_KEY: keys}), {"com.uber.hoodie.bloomfilter": text})
    assert footer.bloom_kind == "SIMPLE"
    found = footer.bloom_filter()
    assert found is not None
    assert np.all(found.might_contain(keys))


def test_row_groups_without_the_key_column_are_listed_without_bounds(tmp_path: Path) -> None:
    footer = footer_of(tmp_path, pa.table({"id": [1, 2, 3]}), {})
    assert footer.row_groups == (KeyRange(2, None, None), KeyRange(1, None, None))


def test_statistics_of_another_type_than_text_are_no_bounds(tmp_path: Path) -> None:
    footer = footer_of(tmp_path, pa.table({"id": [1, 2, 3]}), {}, key_column="id")
    assert footer.row_groups == (KeyRange(2, None, None), KeyRange(1, None, None))


def test_a_file_without_rows_has_no_keys(tmp_path: Path) -> None:
    footer = footer_of(tmp_path, pa.schema([(RECORD_KEY, pa.string())]).empty_table(), {})
    assert (footer.num_rows, footer.min_key, footer.max_key) == (0, None, None)
    assert all(group.min_key is None for group in footer.row_groups)
