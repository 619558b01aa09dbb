"""Reads and merges pass over files by guarantees, whatever says them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine import Lakehouse
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.index.base import KeyedRows
from lakehouse_engine.index.simple import KeyColumnIndex, MetaColumnKeys
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.guarantees import FROM_FOOTERS, Bounds, FileGuarantees
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.skipping import without_ruled_out
from lakehouse_engine.read.sources import guarantees_for
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


@dataclass(frozen=True)
class Told:
    """Bounds of `n` and of keys by file id, without a look at the files."""

    n: tuple[tuple[str, int, int], ...] = ()
    ids: tuple[tuple[str, str, str], ...] = ()

    def groups(self, wanted: RowFilter, slices: int) -> None:
        return None

    def without_rows(
        self, storage: Storage, files: Sequence[BaseFile], wanted: RowFilter, *, verify: bool = True
    ) -> frozenset[str]:
        bounds = {name: (pc.field("n") >= low) & (pc.field("n") <= high) for name, low, high in self.n}
        return frozenset(file.path for file in files if not any(wanted.may_hold([bounds[file.file_id]])))

    def keys(self, storage: Storage, bases: Sequence[BaseFile]) -> list[Bounds | None]:
        known = {name: (low, high) for name, low, high in self.ids}
        return [known.get(base.file_id) for base in bases]


def made(folder: Path) -> TableState:
    table = Lakehouse(str(folder)).create_table("s.t", schema=SCHEMA, record_key=["id"])
    table.bulk_insert(pa.table({"id": ["a"], "n": [1]}, schema=SCHEMA))
    table.bulk_insert(pa.table({"id": ["b"], "n": [5]}, schema=SCHEMA))
    return table.state


def test_files_of_which_a_given_statistic_says_that_no_row_is_wanted_are_left_out(tmp_path: Path) -> None:
    state = made(tmp_path)
    plan = plan_query(state, Query(filters=pc.field("n") > 3), {})
    first, second = plan.files
    assert without_ruled_out(plan).files == plan.files, "a reader that opens the files finds out by itself"
    assert len(without_ruled_out(replace(plan, guarantees=guarantees_for(state, Trusted(state), opening=True))).files) == 1
    both = Told(((first.file_id, 0, 9), (second.file_id, 0, 9)))
    assert without_ruled_out(replace(plan, guarantees=both)).files == plan.files
    neither = Told(((first.file_id, 0, 3), (second.file_id, 0, 3)))
    assert without_ruled_out(replace(plan, guarantees=neither)).files == ()


def paths_with(state: TableState, keys: Sequence[str], guarantees: FileGuarantees) -> list[str]:
    """Paths of the files in which some of the keys are found."""
    batch = KeyedRows(pa.array(keys), {"": np.arange(len(keys))})
    found = KeyColumnIndex(True, False, guarantees).tag(state.storage, state.view, batch, MetaColumnKeys(), LocalRunner(1))
    return [one.base.path for one in found]


def test_keys_are_looked_up_in_files_whose_given_bounds_hold_them(tmp_path: Path) -> None:
    state = made(tmp_path)
    names = {piece.base_file.path: piece.file_id for piece in state.view.latest_slices() if piece.base_file is not None}
    (path,) = paths_with(state, ["b"], FROM_FOOTERS)
    elsewhere = [(name, "x", "z") for name in names.values()]
    assert paths_with(state, ["b"], Told(ids=tuple(elsewhere))) == []
    there = [(name, "a", "c") if name == names[path] else (name, "x", "z") for name in names.values()]
    assert paths_with(state, ["b"], Told(ids=tuple(there))) == [path]


def test_footers_that_were_read_tell_the_bounds_of_keys(tmp_path: Path) -> None:
    state = made(tmp_path)
    bases = [piece.base_file for piece in state.view.latest_slices() if piece.base_file is not None]
    assert len(paths_with(state, ["a", "b"], FROM_FOOTERS)) == 2
    assert sorted(bounds for bounds in FROM_FOOTERS.keys(state.storage, bases) if bounds) == [("a", "a"), ("b", "b")]
