"""What stores differ in, as far as no server is needed: what is there, and how errors of Azure and Google are met."""

from __future__ import annotations

from pathlib import Path

import obstore
import pytest
from obstore.store import LocalStore

from lakehouse_engine.errors import OptionError, UnknownOptionError, UnsafePathError
from lakehouse_engine.storage.locations import storage_for
from lakehouse_engine.storage.objects.delete import delete_objects
from lakehouse_engine.storage.objects.store import ObjectStorage

KEY = '{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}'
ACCOUNT = {"account_name": "someone", "account_key": "c29tZXRoaW5n"}


def test_an_absent_object_keeps_no_other_from_being_deleted(tmp_path: Path) -> None:
    """obstore's store of files says of what is not there, as Azure and Google do and S3 does not."""
    store = LocalStore(tmp_path)
    for name in ("a", "b", "kept"):
        obstore.put(store, name, b"1")
    delete_objects(store, ["absent", "a", "absent too", "b"])
    delete_objects(store, ["absent"])
    assert [meta["path"] for page in obstore.list(store) for meta in page] == ["kept"]


@pytest.mark.parametrize(
    ("location", "options"),
    [
        ("az://container/lake", {**ACCOUNT, "endpoint": "https://127.0.0.1:1/someone"}),
        ("az://container/lake", {"account_name": "someone", "sas_token": "sv=1&sig=x"}),
        ("az://container/lake", {"account_name": "someone", "client_id": "a", "client_secret": "b", "tenant_id": "c"}),
        ("az://container/lake", {"use_emulator": "true"}),
        ("abfss://container@someone.dfs.core.windows.net/lake", {"account_key": "c29tZXRoaW5n"}),
        ("gs://bucket/lake", {"bearer_token": "x", "base_url": "https://127.0.0.1:1"}),
        ("gs://bucket/lake", {"service_account_key": KEY}),
        ("s3://bucket/lake", {"endpoint": "https://127.0.0.1:1", "region": "r"}),
    ],
)
def test_options_are_taken(location: str, options: dict[str, str]) -> None:
    assert isinstance(storage_for(location, options), ObjectStorage)


@pytest.mark.parametrize(
    ("location", "options", "error", "message"),
    [
        ("az://container/lake", {"account_key": "c29tZXRoaW5n"}, OptionError, "set 'account_name'"),
        ("az://container/lake", {**ACCOUNT, "region": "x"}, UnknownOptionError, "'region', which az"),
        ("az://container/lake", {**ACCOUNT, "endpoint": "https://127.0.0.1:1", "acount_name": "x"}, UnknownOptionError, "'acount_name'"),
        ("gs://bucket/lake", {"endpoint": "https://127.0.0.1:1"}, UnknownOptionError, "'endpoint', which gs"),
        ("gs://bucket/lake", {"service_account": "/no/such/file"}, OptionError, "cannot be used"),
    ],
)
def test_options_that_there_are_not_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, location: str, options: dict[str, str], error: type[OptionError], message: str
) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_USE_EMULATOR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(error, match=message) as caught:
        storage_for(location, options)
    assert "c29tZXRoaW5n" not in str(caught.value)


@pytest.mark.parametrize("path", ["back\\slash", "v./file", "a/v."])
def test_names_that_azure_takes_for_others_are_refused(path: str) -> None:
    storage = storage_for("az://container/lake", ACCOUNT)
    for verb in (storage.read, storage.list, storage.has_object, storage.open_input):  # type: ignore[attr-defined]
        with pytest.raises(UnsafePathError, match="Azure"):
            verb(path)
