"""Files of a table after its writes, in whichever order these are added."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import LiveFiles, WriteRecord, WrittenFile, live_partitions

GROUP, OTHER = FileGroupId("p", "a-0"), FileGroupId("q", "b-0")


def time(number: int) -> str:
    return f"{20260101000000000 + number}"


def base(number: int) -> WrittenFile:
    return WrittenFile(f"p/base-{number}", time(number), time(number))


def log(number: int, slice_of: int) -> WrittenFile:
    return WrittenFile(f"p/log-{slice_of}.{number}", time(number), time(slice_of), is_log=True)


def write(number: int, *files: WrittenFile, replaced: tuple[FileGroupId, ...] = ()) -> WriteRecord:
    return WriteRecord(time(number), tuple((GROUP, file) for file in files), replaced)


def only(*writes: WriteRecord) -> list[str]:
    """Paths of the group's live files; the same for each order of the writes, and, where none replaces groups, for each split of them."""
    found, at_once = set(), any(write.replaced for write in writes)
    for order in permutations(writes):
        for split in (0,) if at_once else range(len(order) + 1):
            live = LiveFiles().after(order[:split]).after(order[split:])
            group = live.of(GROUP)
            found.add(tuple(file.path for file in group.files()) if group is not None else ())
    (paths,) = found
    return list(paths)


INSERT, LOGGED, COMPACTION = write(1, base(1)), write(2, log(2, 1)), write(3, base(3))


def test_a_newer_base_file_takes_the_place_of_the_older_and_of_its_logs() -> None:
    assert only(INSERT, LOGGED) == ["p/base-1", "p/log-1.2"]
    assert only(INSERT, LOGGED, COMPACTION) == ["p/base-3"]
    assert only(LOGGED, COMPACTION) == ["p/base-3"]


def test_logs_of_a_planned_compaction_stay_before_and_after_it() -> None:
    later = write(4, log(4, 3))
    assert only(INSERT, LOGGED, later) == ["p/base-1", "p/log-1.2", "p/log-3.4"]
    assert only(INSERT, LOGGED, later, COMPACTION) == ["p/base-3", "p/log-3.4"]


def test_logs_are_in_the_order_of_their_writes() -> None:
    assert only(write(12, log(12, 1)), write(9, log(9, 1)), INSERT) == ["p/base-1", "p/log-1.9", "p/log-1.12"]


def test_a_replaced_group_is_gone_unless_it_was_written_later() -> None:
    replacing = write(4, replaced=(GROUP,))
    assert only(INSERT, LOGGED, replacing) == []
    assert only(INSERT, replacing, write(5, base(5))) == ["p/base-5"]


def test_files_at_some_paths_are_left_out_and_groups_that_lose_all() -> None:
    other = WriteRecord(time(1), ((OTHER, WrittenFile("q/base", time(1), time(1))),))
    live = LiveFiles().after([INSERT, LOGGED, other])
    assert live.partitions() == {"p", "q"}
    assert [file.path for _, file in live.without(frozenset(["p/base-1", "q/base"])).files()] == ["p/log-1.2"]
    assert [group for group, _ in live.within(frozenset(["q", "r"]))] == [OTHER]
    assert (len(live), len(live.without(frozenset(["q/base"])))) == (2, 1)


def made_up(rng: random.Random) -> list[WriteRecord]:
    """Writes, oldest first: each writes to groups of some partitions, and replaces some that were written before."""
    groups = [FileGroupId(path, f"{number}-0") for path in "pqr" for number in range(3)]
    written: set[FileGroupId] = set()
    writes = []
    for number in range(1, rng.randint(2, 9)):
        files = [(group, WrittenFile(f"{group.partition_path}/{number}", time(number), time(number))) for group in rng.sample(groups, 2)]
        if rng.random() < 0.3:
            files = []
        known = sorted(written | {group for group, _ in files})
        writes.append(WriteRecord(time(number), tuple(files), tuple(rng.sample(known, rng.randint(0, len(known))))))
        written.update(group for group, _ in files)
    return writes


@pytest.mark.parametrize("seed", range(200))
def test_partitions_with_live_files_are_known_without_the_files(seed: int) -> None:
    rng = random.Random(seed)
    writes = made_up(rng)
    at = rng.randrange(len(writes) + 1)
    before = LiveFiles().after(writes[:at])
    later = rng.sample(writes[at:], len(writes) - at)
    assert live_partitions(before, later) == before.after(later).partitions()
