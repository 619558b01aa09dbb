from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.file_system_view import FileSystemView


def at(number: int) -> str:
    return f"{20260101000000000 + number}"


class FakeLister:
    """Lists `partition -> (file id, instant)`, and remembers what it was asked."""

    def __init__(self, files: dict[str, list[tuple[str, int]]]) -> None:
        self._files = files
        self.asked: list[str] = []

    def partitions(self) -> list[str]:
        self.asked.append("*")
        return sorted(self._files)

    def files(self, partition_path: str) -> list[StoredFile]:
        self.asked.append(partition_path)
        return [
            StoredFile(f"{partition_path}/{id_}_0-0-0_{at(number)}.parquet", 1, 0) for id_, number in self._files.get(partition_path, [])
        ]

    def is_partition(self, path: str) -> bool:
        return path in self._files

    def look_ahead(self, partitions: Sequence[str]) -> None:
        """Lists nothing ahead."""

    def forget(self, partition_path: str | None = None) -> None:
        """Remembers nothing."""

    @property
    def is_hearsay(self) -> bool:
        return False


TIMELINE = Timeline(tuple(Instant(at(number), Action.COMMIT, State.COMPLETED) for number in range(1, 10)))
FILES = {"p=1": [("a-0", 1), ("a-0", 3), ("b-0", 2)], "p=2": [("c-0", 4)], "p=3": []}
REPLACED = {FileGroupId("p=1", "b-0"): at(5)}


def view(lister: FakeLister) -> FileSystemView:
    return FileSystemView(lister, TIMELINE, lambda: REPLACED)


def names(slices: list) -> list[tuple[str, str]]:  # type: ignore[type-arg]
    return [(piece.file_id, piece.base_instant) for piece in slices]


def test_latest_slices_leave_out_replaced_groups() -> None:
    assert names(view(FakeLister(FILES)).latest_slices()) == [("a-0", at(3)), ("c-0", at(4))]
    assert names(view(FakeLister(FILES)).latest_slices("p=1")) == [("a-0", at(3))]


def test_a_group_is_found_by_its_id_and_its_partition_is_listed_once() -> None:
    lister = FakeLister(FILES)
    made = view(lister)
    for group in made.file_groups("p=1"):
        assert made.file_group(group.group) is group
    assert made.file_group(FileGroupId("p=1", "c-0")) is None
    assert made.file_group(FileGroupId("p=9", "c-0")) is None
    assert lister.asked == ["p=1", "p=9"]


def test_slices_as_of_an_instant_show_groups_replaced_later() -> None:
    assert names(view(FakeLister(FILES)).slices_as_of(at(2))) == [("a-0", at(1)), ("b-0", at(2))]
    assert names(view(FakeLister(FILES)).slices_as_of(at(5))) == [("a-0", at(3)), ("c-0", at(4))]
    assert view(FakeLister(FILES)).slices_as_of(at(0)) == []


def test_replaced_groups_as_of_an_instant() -> None:
    assert view(FakeLister(FILES)).replaced_as_of() == {FileGroupId("p=1", "b-0")}
    assert view(FakeLister(FILES)).replaced_as_of(at(5)) == {FileGroupId("p=1", "b-0")}
    assert view(FakeLister(FILES)).replaced_as_of(at(4)) == set()


def test_each_partition_is_listed_once_and_only_when_asked_for() -> None:
    lister = FakeLister(FILES)
    seen = view(lister)
    assert lister.asked == []
    seen.latest_slices("p=2")
    seen.slices_as_of(at(4), "p=2")
    assert lister.asked == ["p=2"]
    seen.latest_slices()
    seen.latest_slices()
    assert sorted(lister.asked) == ["*", "p=1", "p=2", "p=3"]


def test_replaced_groups_are_loaded_once_and_only_when_slices_are_asked_for() -> None:
    calls = []

    def load() -> dict[FileGroupId, str]:
        calls.append(1)
        return {}

    seen = FileSystemView(FakeLister(FILES), TIMELINE, load)
    assert seen.partitions() == ["p=1", "p=2", "p=3"]
    assert not calls
    seen.latest_slices()
    seen.latest_slices()
    assert len(calls) == 1


def test_unknown_partition_has_no_slices() -> None:
    assert view(FakeLister(FILES)).latest_slices("p=9") == []
