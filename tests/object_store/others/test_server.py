"""That a server carries out conditions exactly: without that, what passes here would say nothing of the store that it stands for."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

from lakehouse_engine.errors import StoredFileExistsError
from lakehouse_engine.storage.objects.store import ObjectStorage
from tests.object_store.dbt_store import Store


def test_of_many_that_create_one_does_and_it_is_its_content(s3_store: Store) -> None:
    storage = ObjectStorage.at(s3_store.place(uuid.uuid4().hex), s3_store.options)

    def won(name: str, number: int) -> bool:
        try:
            storage.create(name, str(number).encode())
        except StoredFileExistsError:
            return False
        return True

    with ThreadPoolExecutor(64) as pool:
        for turn in range(50):
            found = list(pool.map(lambda number, turn=turn: won(f"{turn}", number), range(64)))
            assert sum(found) == 1
            assert storage.read(f"{turn}") == str(found.index(True)).encode()


def test_no_step_of_a_counter_is_lost(s3_store: Store) -> None:
    storage = ObjectStorage.at(s3_store.place(uuid.uuid4().hex), s3_store.options)
    storage.create("counter", b"0")

    def count(steps: int) -> None:
        while steps:
            found = storage.read_tagged("counter")
            assert found is not None
            steps -= storage.put_tagged("counter", str(int(found[0]) + 1).encode(), found[1]) is not None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, [50] * 8))
    assert storage.read("counter") == b"400"
