"""Servers of this machine that speak as Azure and Google do, as profiles name them; `make object-store-others-setup` fetches them.

Azure: Azurite (npm), named by AZURITE. It asks for keys.
Google: fake-gcs-server (Go), named by FAKE_GCS_SERVER, behind `google.py`. It asks for no keys itself.

Both carry out conditions exactly: of 64 threads that create an object 50 times over one did each time, and a counter that eight threads
step 50 times, each over the content that it read, was right at the end.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import subprocess
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.object_store.dbt_store import Store, answers
from tests.object_store.google import Google
from tests.support.processes import free_port, wait_for

EMULATORS = Path(__file__).resolve().parents[2] / os.environ.get("LAKEHOUSE_EMULATORS", ".cache/emulators")
AZURITE = Path(os.environ.get("AZURITE") or EMULATORS / "node_modules/.bin/azurite-blob")
FAKE_GCS_SERVER = Path(os.environ.get("FAKE_GCS_SERVER") or EMULATORS / "fake-gcs-server")
_VERSION, _LATER = "2020-10-02", "2099-01-01T00:00:00Z"
_JSON = {"Content-Type": "application/json"}
TOKEN = "canaryTOKENnotShown0123456789"
ACCOUNT, ACCOUNT_KEY = "lakecanary", base64.b64encode(b"canaryKEYnotShown" * 4).decode()


@pytest.fixture(scope="session")
def azure_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    if not AZURITE.exists():
        pytest.skip("there is no Azurite (make object-store-others-setup) to be the object store")
    port, container = free_port(), f"lake-{uuid.uuid4().hex[:12]}"
    # In memory each object is an extent of its own, and clearing them up, every ten minutes, leaves requests unanswered.
    folder = str(tmp_path_factory.mktemp("azurite"))
    command = [str(AZURITE), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", folder, "--silent"]
    # obstore names a version of the API; that Azurite knows it is not what is tried here.
    command += ["--skipApiVersionCheck", "--disableTelemetry"]
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    with _running(command, port, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}):
        make_container(endpoint, container)
        options = {"endpoint": endpoint, "account_name": ACCOUNT, "account_key": ACCOUNT_KEY, "allow_http": "true"}
        yield Store(container, options, asks=True, scheme="az")


@pytest.fixture(scope="session")
def google_store() -> Iterator[Store]:
    if not FAKE_GCS_SERVER.exists():
        pytest.skip("there is no fake-gcs-server (make object-store-others-setup) to be the object store")
    port, bucket = free_port(), f"lake-{uuid.uuid4().hex[:12]}"
    address = f"127.0.0.1:{port}"
    command = [str(FAKE_GCS_SERVER), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    with _running([*command, "-public-host", address, "-log-level", "error"], port, {}):
        made = urllib.request.Request(f"http://{address}/storage/v1/b?project=test", json.dumps({"name": bucket}).encode(), _JSON)
        urllib.request.urlopen(made).close()
        with Google(f"http://{address}", {TOKEN, ""}) as front:
            yield Store(bucket, {"base_url": front.address, "bearer_token": TOKEN, "allow_http": "true"}, asks=True, scheme="gs")
            front.shutdown()


def make_container(endpoint: str, name: str) -> None:
    asked = urllib.request.Request(f"{endpoint}/{name}?restype=container&{account_sas('c')}", data=b"", method="PUT")
    urllib.request.urlopen(asked).close()


def account_sas(permissions: str) -> str:
    """A token that allows what `permissions` says, of the account's containers and blobs (Azurite deletes none by it):
    https://learn.microsoft.com/rest/api/storageservices/create-account-sas
    """
    told = (ACCOUNT, permissions, "b", "sco", "", _LATER, "", "", _VERSION, "")
    return _signed(told, {"ss": "b", "srt": "sco", "sp": permissions, "se": _LATER})


def container_sas(container: str, permissions: str, until: str = _LATER) -> str:
    """A token of one container: https://learn.microsoft.com/rest/api/storageservices/create-service-sas"""
    told = (permissions, "", until, f"/blob/{ACCOUNT}/{container}", "", "", "", _VERSION, "c", "", "", "", "", "", "")
    return _signed(told, {"sr": "c", "sp": permissions, "se": until})


def _signed(told: Sequence[str], fields: Mapping[str, str]) -> str:
    signed = hmac.new(base64.b64decode(ACCOUNT_KEY), "\n".join(told).encode(), hashlib.sha256).digest()
    return urllib.parse.urlencode({"sv": _VERSION, **fields, "sig": base64.b64encode(signed).decode()})


@contextmanager
def _running(command: Sequence[str], port: int, environment: Mapping[str, str]) -> Iterator[None]:
    log = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment}) as server:
        try:
            wait_for(command[0], lambda: server.poll() is not None or answers(port))
            assert server.poll() is None, f"{command[0]} has ended"
            yield
        finally:
            server.terminate()
