"""Apache Hudi 1.2 reads what we write into a bucket, by S3A, and writes the same tables while we do, under the lock of both.

`make object-store-hudi` fetches what it needs (Hadoop's S3A and the AWS SDK, 280 MB). The S3 client of Hudi's lock is in no registry: what
is here (`S3StorageLockClient.java`) makes its requests instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse_engine import Lakehouse
from tests.interop.beside import BESIDE, SHARED, Hudi, begin, write_beside
from tests.interop.client import HudiJudge, bundle_jar, why_unavailable
from tests.interop.tables import TABLES, check_answers, keyed
from tests.object_store.dbt_store import Store, s3_store
from tests.support.readers import assert_same_rows, read_with_hudi_rs

__all__ = ["s3_store"]
VERSION = "1.2.0"
S3A = os.environ.get("LAKEHOUSE_HUDI_S3A_JARS")
PROVIDER = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
LOCK = {**BESIDE, "hoodie.write.lock.provider": PROVIDER}
MOR = {
    "mor": keyed("mor", ["id"], ["region"], table_type="mor"),
    "mor_compacted": keyed("mor_compacted", ["id", "code"], ["day"], table_type="mor", properties={"hoodie.compact.inline": "true"}),
}
KINDS = {**TABLES, **MOR}


@dataclass(frozen=True)
class Place:
    """A folder of a bucket, as builders of tables go into one."""

    uri: str

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.uri}/{name}")

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    def __str__(self) -> str:
        return self.uri


def s3a(path: str) -> str:
    return path.replace("s3://", "s3a://", 1)


@pytest.fixture(scope="module")
def hudi(s3_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiJudge]:
    jars = sorted(Path(S3A).glob("*.jar")) if S3A else []
    reason = why_unavailable(VERSION) or (None if jars and shutil.which("javac") else "`make object-store-hudi` brings S3A and runs this")
    if reason or s3_store.asks:
        pytest.skip(reason or "the client of Hudi's lock signs nothing, and this server asks for keys")
    found = [bundle_jar(VERSION), *jars, _lock_client(tmp_path_factory.mktemp("lock"))]
    hadoop = {
        "endpoint": s3_store.options["endpoint"],
        "endpoint.region": s3_store.options["region"],
        "access.key": s3_store.options["access_key_id"],
        "secret.key": s3_store.options["secret_access_key"],
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "directory.marker.retention": "keep",
    }
    conf = {f"spark.hadoop.fs.s3a.{key}": value for key, value in hadoop.items()}
    with HudiJudge(VERSION, conf={**conf, "spark.jars": ",".join(map(str, found))}, timeout=600) as judge:
        yield judge


def _lock_client(folder: Path) -> Path:
    source = Path(__file__).with_name("S3StorageLockClient.java")
    subprocess.run(["javac", "-cp", str(bundle_jar(VERSION)), "-d", str(folder / "classes"), str(source)], check=True)
    made = folder / "lock-client.jar"
    shutil.make_archive(str(made.with_suffix("")), "zip", folder / "classes")
    return made.with_suffix(".zip").rename(made)


@pytest.fixture(scope="module")
def environment(s3_store: Store) -> Iterator[None]:
    """The store as builders of tables, and hudi-rs, find it without being told."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in s3_store.environment.items():
            patched.setenv(name, value)
        yield


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", KINDS)
def test_hudi_hudi_rs_and_we_read_the_same_rows(hudi: HudiJudge, environment: None, s3_store: Store, name: str) -> None:
    built = KINDS[name](Place(s3_store.place(uuid.uuid4().hex)))  # type: ignore[arg-type]
    place = built.table.path
    read = built.check_snapshot()
    assert_same_rows(read_with_hudi_rs(place), read, what="hudi-rs")
    check_answers(hudi, built, name, path=s3a(place))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("overlapping", [False, True], ids=["disjoint", "overlapping"])
def test_both_write_at_the_same_time(hudi: HudiJudge, s3_store: Store, table_type: str, overlapping: bool) -> None:
    lake = Lakehouse(s3_store.place(f"beside-{uuid.uuid4().hex}"), storage_options=s3_store.options)
    table, acknowledged = begin(lake, table_type, LOCK)
    options = {**LOCK, "lakehouse.test.store": s3_store.options["endpoint"]}
    # Hudi looks for this lock once a second.
    write_beside(Hudi(hudi, table, acknowledged, overlapping, path=s3a(table.path), options=options), pause=2)
    read = table.to_arrow(meta_columns=True)
    acknowledged.check(read)
    assert_same_rows(hudi.read(s3a(table.path), options={"hoodie.metadata.enable": "false"}), read)
    acknowledged.write(table, "ours", [*SHARED, "last"])
    acknowledged.check(table.to_arrow())
