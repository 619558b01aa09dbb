"""`verify` on every table that Hudi wrote: nothing is wrong with one, and what it cannot check of one it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.undo.restore import restore
from lakehouse_engine.verify import FindingKind, verify
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import EVERY_VERSION, LATER_VERSIONS, fixtures_root, spark_fixtures, unpack_spark_fixture

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

SKIPPED = {
    "bootstrap_metadata_only": "bootstrapped with METADATA_ONLY",
    "keygen_custom": "timestamp",
    "no_meta_fields": "no meta columns",
    "schema_on_read": "schema-on-read history",
}
"""Parts of names of tables of which something cannot be checked, with a word of the reason."""
FORMATS_NOT_STORED = ("v6-0.15.0/cow_keygen_timestamp_millis", "v6-0.15.0/cow_keygen_timestamp_unix")
"""Hudi 0.15 does not store of which kind the timestamps of these are."""
SAVEPOINTED = [name for name in spark_fixtures(LATER_VERSIONS, "mor") if name.endswith(("/mor_clean_commits", "/mor_savepoint_restore"))]


def state_of(path: Path) -> TableState:
    return TableState.load(LocalStorage(str(path)))


@pytest.mark.parametrize("name", spark_fixtures(EVERY_VERSION))
def test_nothing_is_wrong_with_a_table_of_hudi(name: str, tmp_path: Path) -> None:
    report = verify(state_of(unpack_spark_fixture(name, tmp_path)))
    assert report.findings == ()
    reason = next((text for part, text in SKIPPED.items() if part in name), "")
    if name in FORMATS_NOT_STORED:
        reason = "hoodie.keygen.timebased.timestamp.type"
    assert bool(report.skipped) == bool(reason), report.skipped
    assert reason in "".join(report.skipped)


@pytest.mark.parametrize("name", SAVEPOINTED)
def test_of_what_a_savepoint_lists_only_logs_of_later_writes_may_be_gone(name: str, tmp_path: Path) -> None:
    path = unpack_spark_fixture(name, tmp_path)
    (saved,) = state_of(path).timeline.savepointed
    restore(LocalStorage(str(path)), to=saved, lock_timeout_ms=10_000)
    assert verify(state_of(path)).findings == ()
    pinned = sorted(protected_files(state_of(path)))
    (path / pinned[0]).unlink()
    missing = [finding.path for finding in verify(state_of(path)).findings if finding.kind is FindingKind.MISSING_FILE]
    assert missing == [pinned[0]]
