"""A manifest of names and sizes, as a metadata table has them, can be given to a table in place of what its commits say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from lakehouse_engine.errors import CorruptFileError, MissingFileError
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.manifest.from_commits import FromCommits
from lakehouse_engine.manifest.manifest import ExpectedFile, Manifest
from lakehouse_engine.manifest.missing import lost_files
from lakehouse_engine.model.files import BaseFile, LogFile, join_path
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import WrittenFile
from lakehouse_engine.model.logged import LogPromise, ToldLogs
from lakehouse_engine.model.order import Order
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from tests.crash.scenarios import batch, create
from tests.support.local_table import LocalTable

Names = Mapping[str, Mapping[str, int]]
"""Sizes of the data files of each partition, by name."""


@dataclass(frozen=True)
class Kept:
    """What the `files` partition of a metadata table would say of the newest snapshot. Earlier moments are left to the commits."""

    names: Names
    commits: FromCommits

    @property
    def order(self) -> Order:
        return self.commits.order

    @property
    def replaced_at(self) -> Mapping[FileGroupId, str]:
        return self.commits.replaced_at

    def partitions(self) -> Sequence[str]:
        return sorted(self.names)

    def written_partitions(self) -> Sequence[str]:
        return self.partitions()

    def named_partitions(self, as_of: str | None) -> set[str]:
        return set(self.names)

    def live(self, as_of: str | None, partitions: frozenset[str] | None) -> Mapping[FileGroupId, ExpectedFile]:
        if as_of is not None:
            return self.commits.live(as_of, partitions)
        newest: dict[FileGroupId, BaseFile] = {}
        for base in self._bases(partitions):
            group = FileGroupId(base.partition_path, base.file_id)
            newest[group] = max(newest.get(group, base), base, key=lambda one: one.instant_time)
        return {group: ExpectedFile(group, base.instant_time, base.path) for group, base in newest.items()}

    def bases(self, as_of: str | None, partitions: frozenset[str] | None) -> Iterator[WrittenFile]:
        for base in self._bases(partitions):
            yield WrittenFile(base.path, base.instant_time, base.instant_time, size=base.size)

    def promises(self, as_of: str | None, partitions: frozenset[str] | None = None) -> Mapping[FileGroupId, Sequence[LogPromise]]:
        return self.commits.promises(as_of, partitions)

    def told(self, as_of: str | None) -> ToldLogs:
        return self.commits.told(as_of)

    def has(self, base: BaseFile) -> bool:
        return base.name in self.names.get(base.partition_path, {})

    def has_log(self, log: LogFile) -> bool:
        return log.name in self.names.get(log.partition_path, {})

    def _bases(self, partitions: frozenset[str] | None) -> Iterator[BaseFile]:
        for path, names in self.names.items():
            if partitions is None or path in partitions:
                yield from (parse_base_file(path, name, size) for name, size in names.items() if is_base_file_name(name))


def table_of(kind: str) -> LocalTable:
    storage = MemoryStorage()
    create(storage, kind)
    table = LocalTable(storage)
    table.bulk_insert(batch([("a", 1, "x", "a1"), ("b", 1, "y", "b1")]))
    table.upsert(batch([("a", 2, "x", "a2")]))
    return table


def names_of(table: LocalTable) -> dict[str, dict[str, int]]:
    files = [entry for path in table.state.view.partitions() for entry in table.storage.list(path)]
    found: dict[str, dict[str, int]] = {}
    for entry in files:
        if is_base_file_name(entry.name) or is_log_file_name(entry.name):
            found.setdefault(entry.path.rpartition("/")[0], {})[entry.name] = entry.size
    return found


def given(table: LocalTable, names: Names) -> TableState:
    def made(commits: FromCommits) -> Manifest:
        return Kept(names, commits)

    return TableState.load(table.storage, made)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_states_that_follow_have_the_manifest_that_was_given(kind: str) -> None:
    table = table_of(kind)
    names = names_of(table)
    state = given(table, names)
    moment = state.order.moment(table.instants()[-1])
    for one in (state, state.refresh(), state.advance(), state.up_to(moment)):
        assert isinstance(one.manifest, Kept)
        assert one.live_partitions() == sorted(names)
        assert lost_files(one.manifest, None, one.view.latest_slices(), logs=True) == []
    assert table.read(state=state) == table.read()


def test_a_file_that_only_the_manifest_knows_is_missed() -> None:
    table = table_of("cow")
    names = names_of(table)
    newest = parse_base_file("", max(names["part=x"]))
    later = f"{newest.file_id}_9-9-9_{int(newest.instant_time) + 1}.parquet"
    with pytest.raises(MissingFileError, match=later):
        check_complete(given(table, {**names, "part=x": {**names["part=x"], later: 9}}))
    check_complete(table.state)


def test_sizes_are_those_of_the_manifest() -> None:
    table = table_of("cow")
    names = {path: {name: size + 1 for name, size in files.items()} for path, files in names_of(table).items()}
    with pytest.raises(CorruptFileError):
        check_complete(given(table, names))


def test_a_base_file_that_the_manifest_does_not_name_is_none_of_the_table() -> None:
    table = table_of("cow")
    state = given(table, {path: files for path, files in names_of(table).items() if path != "part=y"})
    (stray,) = state.view.strays("part=y")
    assert stray.path == join_path("part=y", stray.name)
    assert [piece.partition_path for piece in state.view.latest_slices()] == ["part=x"]


def test_commits_name_the_files_that_are_there() -> None:
    table = table_of("mor")
    promises = table.state.manifest.promises(None)
    logs = {promise.path for written in promises.values() for promise in written}
    listed = {join_path(path, name) for path, files in names_of(table).items() for name in files if is_log_file_name(name)}
    assert logs == listed
    assert all(parse_log_file(path.rpartition("/")[0], path.rpartition("/")[2]).file_id for path in logs)
