"""`HoodieTable.verify`: the table as it is now, whatever the handle knew."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakehouse_engine import Lakehouse


def test_a_table_is_whole_until_a_byte_of_a_file_is_another(tmp_path: Path) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=pa.schema({"id": pa.int64(), "v": pa.string()}), record_key=["id"])
    table.insert(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    assert table.verify().ok
    (file,) = Path(table.path).glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    found = table.verify()
    assert (found.ok, [finding.path for finding in found.findings]) == (False, [file.name])
    assert table.verify(quick=True).ok
