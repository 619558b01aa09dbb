"""A server of this machine as a profile names it, of S3 here (others: `emulators.py`), and where its keys are looked for.

`versitygw` (of the PATH, or named by VERSITYGW) asks for keys; without it moto's server, which takes any: `make object-store-setup` puts it
into an environment of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.processes import free_port, wait_for

ACCESS, SECRET = "AKCANARYNOTSHOWN", "canarySECRETnotShown0123456789abcdefgh"
MOTO = Path(__file__).resolve().parents[2] / os.environ.get("LAKEHOUSE_S3_VENV", ".venv-s3") / "bin" / "python"


_ENVIRONMENT = {"s3": "AWS", "az": "AZURE_STORAGE", "gs": "GOOGLE"}


@dataclass(frozen=True)
class Store:
    """A bucket. `asks`: whether the server looks at keys. `scheme`: whose API it speaks."""

    bucket: str
    options: Mapping[str, str]
    asks: bool
    scheme: str = "s3"

    def place(self, name: str) -> str:
        return f"{self.scheme}://{self.bucket}/{name}"

    def elsewhere(self, endpoint: str) -> dict[str, str]:
        """The options for the same by another address."""
        return {**self.options, self._address: endpoint}

    @property
    def endpoint(self) -> str:
        return self.options[self._address]

    @property
    def account_path(self) -> str:
        """What an address has behind its host: of Azure's on this machine the account."""
        return urlsplit(self.endpoint).path

    @property
    def _address(self) -> str:
        return "base_url" if self.scheme == "gs" else "endpoint"

    @property
    def environment(self) -> dict[str, str]:
        """What tells the clients of obstore and hudi-rs the same as `options`."""
        prefix = _ENVIRONMENT[self.scheme]
        client = {"allow_http": f"{prefix.partition('_')[0]}_ALLOW_HTTP"}
        return {client.get(name, f"{prefix}_{name.upper()}"): value for name, value in self.options.items()}

    @property
    def account_key(self) -> str:
        """Google's: says where the store is, and that no token is asked for."""
        nobody = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        return json.dumps({"gcs_base_url": self.endpoint, "disable_oauth": True, **nobody})

    @property
    def for_hudi_rs(self) -> dict[str, str]:
        """Its client of Google's takes an address in the key of an account alone."""
        return {"GOOGLE_SERVICE_ACCOUNT_KEY": self.account_key, "GOOGLE_ALLOW_HTTP": "true"} if self.scheme == "gs" else self.environment

    @property
    def secret_names(self) -> list[str]:
        """The options that are keys."""
        known = ("access_key_id", "secret_access_key", "account_key", "bearer_token")
        return [name for name in known if name in self.options]

    @property
    def secrets(self) -> list[bytes]:
        """What nobody may be shown."""
        return [self.options[name].encode() for name in self.secret_names]


@pytest.fixture(scope="session")
def s3_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    gateway, port, folder = os.environ.get("VERSITYGW") or shutil.which("versitygw"), free_port(), tmp_path_factory.mktemp("s3")
    bucket, address = f"lake-{uuid.uuid4().hex[:12]}", f"127.0.0.1:{port}"
    if gateway:
        (folder / bucket).mkdir()
        command = [gateway, "--port", address, "--access", ACCESS, "--secret", SECRET, "--quiet", "posix", str(folder)]
    elif MOTO.exists():
        command = [str(MOTO), str(Path(__file__).with_name("server.py")), str(port)]
    else:
        pytest.skip("there is neither versitygw nor moto's server (make object-store-setup) to be the object store")
    options = {"endpoint": f"http://{address}", "access_key_id": ACCESS, "secret_access_key": SECRET, "region": "us-east-1"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for("the S3 server", lambda: answers(port))
            if not gateway:
                urllib.request.urlopen(urllib.request.Request(f"http://{address}/{bucket}", method="PUT")).close()
            yield Store(bucket, {**options, "allow_http": "true"}, asks=bool(gateway))
        finally:
            server.terminate()


def answers(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def secrets_below(folder: Path, store: Store, but: Sequence[str] = ()) -> list[str]:
    """Files that a key of the store is in."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in but)
    return sorted(str(path) for path in files if any(secret in path.read_bytes() for secret in store.secrets))
