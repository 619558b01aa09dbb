from __future__ import annotations

import pytest

from lakehouse_engine.errors import PropertiesError, TableExistsError, TableNotFoundError
from lakehouse_engine.format.properties import parse_properties
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.config_store import BACKUP, PROPERTIES, ConfigStore

CONFIG = TableConfig(
    {
        "hoodie.table.name": "trips",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.table.create.schema": '{"type":"record","name":"r"}',
        "some.unknown.key": "kept = as : it # is",
    }
)


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    ConfigStore(storage).create(CONFIG)
    return storage


def test_created_configuration_reads_back_with_a_checksum(storage: MemoryStorage) -> None:
    config = ConfigStore(storage).read()
    assert {key: value for key, value in config.properties.items() if key != "hoodie.table.checksum"} == dict(CONFIG.properties)
    assert config.properties["hoodie.table.checksum"].isdigit()
    assert list(parse_properties(storage.read(PROPERTIES)))[-1] == "hoodie.table.checksum"


def test_creating_over_a_table_is_refused(storage: MemoryStorage) -> None:
    with pytest.raises(TableExistsError):
        ConfigStore(storage).create(CONFIG)


def test_creating_over_a_table_whose_properties_are_being_replaced_is_refused(storage: MemoryStorage) -> None:
    storage.create(BACKUP, storage.read(PROPERTIES))
    storage.delete(PROPERTIES)
    with pytest.raises(TableExistsError):
        ConfigStore(storage).create(CONFIG)


def test_absent_table_is_a_typed_error() -> None:
    with pytest.raises(TableNotFoundError, match="memory://table"):
        ConfigStore(MemoryStorage()).read()
    storage = MemoryStorage()
    storage.create(".hoodie/other", b"")
    with pytest.raises(TableNotFoundError):
        ConfigStore(storage).read()


def test_update_sets_removes_and_keeps_the_rest(storage: MemoryStorage) -> None:
    before = ConfigStore(storage).read()
    after = ConfigStore(storage).update({"hoodie.table.name": "rides", "some.unknown.key": None, "new": "1"})
    assert after == ConfigStore(storage).read()
    assert after.name == "rides"
    assert "some.unknown.key" not in after.properties
    assert after.properties["new"] == "1"
    assert after.create_schema == before.create_schema
    assert after.properties["hoodie.table.checksum"] != before.properties["hoodie.table.checksum"]
    assert storage.head(BACKUP) is None


@pytest.mark.parametrize("main", [None, b"", b"#Properties saved\nhoodie.table.na", b"garbage\\u00zz"])
def test_missing_or_torn_properties_are_read_from_the_backup_and_recovered_by_the_next_update(
    storage: MemoryStorage, main: bytes | None
) -> None:
    whole = storage.read(PROPERTIES)
    storage.create(BACKUP, whole)
    storage.delete(PROPERTIES)
    if main is not None:
        storage.create(PROPERTIES, main)
    assert ConfigStore(storage).read().name == "trips"
    assert ConfigStore(storage).update({"new": "1"}).properties["new"] == "1"
    assert storage.head(BACKUP) is None


def test_properties_cut_at_any_byte_never_hide_the_backup(storage: MemoryStorage) -> None:
    whole = storage.read(PROPERTIES)
    storage.create(BACKUP, whole)
    expected = ConfigStore(storage).read()
    for length in range(len(whole)):
        storage.overwrite(PROPERTIES, whole[:length])
        assert ConfigStore(storage).read().properties == expected.properties


def test_whole_properties_win_over_a_leftover_backup(storage: MemoryStorage) -> None:
    old = storage.read(PROPERTIES)
    ConfigStore(storage).update({"new": "1"})
    storage.create(BACKUP, old)
    assert ConfigStore(storage).read().properties["new"] == "1"
    ConfigStore(storage).update({"newer": "2"})
    assert ConfigStore(storage).read().properties["new"] == "1"


def test_wrong_checksum_without_a_backup_is_an_error(storage: MemoryStorage) -> None:
    storage.overwrite(PROPERTIES, storage.read(PROPERTIES).replace(b"trips", b"trap"))
    with pytest.raises(PropertiesError):
        ConfigStore(storage).read()


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
@pytest.mark.parametrize("leftover", [False, True])
def test_crash_at_any_point_of_an_update_leaves_the_old_or_the_new_configuration(fault: Fault, leftover: bool) -> None:
    def fresh() -> MemoryStorage:
        storage = MemoryStorage()
        ConfigStore(storage).create(CONFIG)
        if leftover:
            storage.create(BACKUP, storage.read(PROPERTIES))
            storage.delete(PROPERTIES)
        return storage

    counting = FaultyStorage(fresh())
    new = ConfigStore(counting).update({"new": "1"})
    for call in range(1, len(counting.mutations) + 1):
        inner = fresh()
        old = ConfigStore(inner).read()
        with pytest.raises(SimulatedCrash):
            ConfigStore(FaultyStorage(inner, call, fault)).update({"new": "1"})
        assert ConfigStore(inner).read() in (old, new)
        assert ConfigStore(inner).update({"new": "1"}) == new
        assert [entry.name for entry in inner.list(".hoodie") if not entry.is_directory] == ["hoodie.properties"]
        assert ConfigStore(inner).copy() == new


def test_a_copy_of_a_table_that_another_release_upgraded_since_is_not_put_back(storage: MemoryStorage) -> None:
    store = ConfigStore(storage)
    assert store.copy() == store.read()
    storage.create(".hoodie/timeline/20260101000000000_20260101000000001.commit", b"x")
    storage.overwrite(PROPERTIES, b"torn")
    assert store.copy() is None
    with pytest.raises(PropertiesError):
        store.put_back()
