"""Files that cleans deleted count as present, by path, by instant, or by group where nothing says the instant."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakehouse_engine import Lakehouse
from lakehouse_engine.manifest.manifest import ExpectedFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.verify.cleaned import Cleaned

ROWS = pa.table({"id": [1]})


def test_a_file_was_cleaned_if_a_clean_names_it_or_its_group_and_instant_and_without_an_instant_any_of_its_group(tmp_path: Path) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=ROWS.schema, record_key=["id"])
    table.insert(ROWS)
    (first,) = table.state.view.latest_slices()
    for _ in range(3):
        table.insert_overwrite_table(ROWS)
    (last,) = table.state.view.latest_slices()
    table.clean(options={"hoodie.clean.commits.retained": 1})
    cleaned = Cleaned(table.state)

    def took(group: FileGroupId, instant_time: str, path: str = "some base file") -> bool:
        return cleaned.took(ExpectedFile(group, instant_time, path))

    assert first.base_file is not None
    assert cleaned.took_path(first.base_file.path)
    assert took(FileGroupId("", "another-0"), "1", first.base_file.path)
    assert [took(first.group, time) for time in (first.base_instant, "", last.base_instant)] == [True, True, False]
    assert [took(last.group, time) for time in (last.base_instant, "")] == [False, False]
