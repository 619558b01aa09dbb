"""The class archive of the JVM: which is used, when one is made, and that Spark starts without it whatever is wrong with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments import archive as module
from dbt.adapters.lakehouse.environments import archive_builder, local
from dbt.adapters.lakehouse.environments.archive import ClassArchive, archive_for, archive_options, folder_of

LONG_AGO = time.time() - 40 * 86400


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    return ClassArchive(tmp_path, "spark-0123456789abcdef")


def made(archive: ClassArchive, content: bytes = b"classes" * 1000) -> Path:
    dumped = archive.folder / "dumped.tmp"
    dumped.write_bytes(content)
    return archive.publish(dumped)


def test_a_published_archive_is_found_and_none_is_wanted_any_more(archive: ClassArchive) -> None:
    assert archive.find() is None
    assert archive.wanted()
    path = made(archive)
    assert archive.find() == path
    assert not archive.wanted()


def test_an_archive_for_another_java_or_other_jars_is_not_found(archive: ClassArchive) -> None:
    made(ClassArchive(archive.folder, "spark-fedcba9876543210"))
    assert archive.find() is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_a_damaged_archive_is_not_used_and_makes_room_for_another(archive: ClassArchive, damage: str) -> None:
    path = made(archive)
    content = path.read_bytes()
    flipped = content[:500] + bytes([content[500] ^ 1]) + content[501:]
    path.write_bytes({"cut": content[:-1], "flipped": flipped, "emptied": b""}[damage])
    assert archive.find() is None
    assert not path.exists()
    assert archive.wanted()


def test_an_archive_of_another_user_is_neither_used_nor_removed(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(archive)
    monkeypatch.setattr(module, "os", SimpleNamespace(**{**vars(os), "getuid": lambda: 4711}))
    os.chown(path, 4712, -1) if os.getuid() == 0 else None
    assert archive.find() is None
    assert path.exists()


def test_one_process_makes_it_and_one_that_died_is_followed_by_another(archive: ClassArchive) -> None:
    assert archive.claim()
    assert not archive.claim()
    assert not archive.wanted()
    os.utime(archive.busy, (LONG_AGO, LONG_AGO))
    assert archive.wanted()
    assert archive.claim()


def test_what_failed_is_not_tried_again_the_same_day(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_builder, "_make", lambda _: (_ for _ in ()).throw(RuntimeError("no such Java option")))
    monkeypatch.setattr(archive_builder.os, "nice", lambda _: 0)
    archive_builder.main(str(archive.folder), archive.name)
    assert "no such Java option" in archive.failure.read_text()
    assert not archive.busy.exists()
    assert not archive.wanted()
    os.utime(archive.failure, (LONG_AGO, LONG_AGO))
    assert archive.wanted()


def test_what_was_not_used_for_long_goes_and_the_rest_stays(archive: ClassArchive) -> None:
    old, kept = made(ClassArchive(archive.folder, "spark-0000000000000000")), made(archive)
    left, foreign = archive.folder / "spark-x.77.tmp", archive.folder / "notes.txt"
    for path in (left, foreign):
        path.write_text("x")
    for path in (old, left, foreign):
        os.utime(path, (LONG_AGO, LONG_AGO))
    archive.sweep()
    assert set(archive.folder.iterdir()) == {kept, foreign}


def test_a_folder_that_cannot_be_written_or_a_full_disk_only_means_that_none_is_made(
    archive: ClassArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    assert not ClassArchive(tmp_path / "file" / "below", archive.name).wanted()
    assert ClassArchive(tmp_path / "file" / "below", archive.name).find() is None
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    assert not archive.wanted()


def test_the_profile_chooses_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (module.VARIABLE, "CI", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder_of(True) == tmp_path / ".cache" / "dbt-lakehouse"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder_of(True) == tmp_path / "xdg" / "dbt-lakehouse"
    monkeypatch.setenv("CI", "true")
    assert folder_of(True) is None
    assert folder_of(str(tmp_path / "named")) == tmp_path / "named"
    monkeypatch.setenv(module.VARIABLE, str(tmp_path / "variable"))
    assert folder_of(True) == tmp_path / "variable"
    assert folder_of(False) is None
    monkeypatch.setenv(module.VARIABLE, "false")
    assert folder_of(True) is None


def test_a_user_without_a_home_has_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (module.VARIABLE, "CI", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert folder_of(True) is None


@pytest.mark.parametrize("choice", [3, "", ["folder"]])
def test_a_profile_key_that_says_neither_is_refused(choice: object) -> None:
    with pytest.raises(DbtConfigError, match="jvm_cache is true, false or a folder"):
        LakehouseCredentials(schema="s", jvm_cache=choice)


def test_another_java_or_a_jar_that_changed_is_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "jars" / "spark-core.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"1")
    names = [archive_for(tmp_path, java, tmp_path).name for java in ("17.0.1", "17.0.2")]
    jar.write_bytes(b"12")
    names.append(archive_for(tmp_path, "17.0.2", tmp_path).name)
    assert len(set(names)) == 3
    assert archive_for(tmp_path / "a:b", "17.0.2", tmp_path) is None
    assert archive_for(tmp_path, "17.0.2", tmp_path / "nowhere") is None


def test_the_users_java_options_stay_and_win(tmp_path: Path) -> None:
    path = tmp_path / "one.jsa"
    options = local.start_conf({local.JAVA_OPTIONS: "-Xlog:cds=info -Dmine=1"}, path)[local.JAVA_OPTIONS]
    assert f"-XX:SharedArchiveFile={path}" in options
    assert options.endswith("-Xlog:cds=info -Dmine=1")
    for own in ("-XX:SharedArchiveFile=/mine.jsa", "-Xshare:off", "-XX:ArchiveClassesAtExit=/mine.jsa"):
        assert archive_options(path, own) == ""
    assert "SharedArchiveFile" not in local.start_conf({})[local.JAVA_OPTIONS]


def test_a_start_without_an_archive_has_one_made_and_one_with_it_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ClassArchive] = []
    monkeypatch.setattr(local, "build_at_exit", asked.append)
    credentials = LakehouseCredentials(schema="s", jvm_cache=str(tmp_path))
    assert local.class_archive(credentials, "17.0.1") is None
    path = made(asked[0])
    assert local.class_archive(credentials, "17.0.1") == path
    assert len(asked) == 1
    assert local.class_archive(LakehouseCredentials(schema="s", jvm_cache=False), "17.0.1") is None
    assert len(asked) == 1


@pytest.mark.parametrize("content", [None, b"", b"no archive" * 5000])
def test_java_starts_without_a_word_whatever_the_file_is(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "spark.jsa"
    if content is not None:
        path.write_bytes(content)
    options = archive_options(path, "").replace('"', "").split()
    plain, given = (
        subprocess.run([local.java_executable(), *more, "-version"], capture_output=True, text=True, timeout=60, check=True)
        for more in ([], options)
    )
    # Java names the sharing of classes behind its version.
    assert (given.stdout, given.stderr) == (plain.stdout, plain.stderr.replace(", sharing", ""))
