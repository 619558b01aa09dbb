"""The class archive of the JVM: which is used, when one is made, and that Spark starts without it whatever is wrong with it."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import subprocess
import sys
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
    dumped.chmod(0o644)
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


@pytest.mark.parametrize("place", ["file", "folder", "parent"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_an_archive_that_others_can_replace_is_not_used_and_none_is_made(tmp_path: Path, place: str, mode: int) -> None:
    archive = ClassArchive(tmp_path / "cache", "spark-0123456789abcdef")
    archive.folder.mkdir(mode=0o700)
    path = made(archive)
    assert archive.find() == path
    changed = {"file": path, "folder": archive.folder, "parent": tmp_path}[place]
    changed.chmod(changed.stat().st_mode | mode)
    assert archive.find() is None
    assert path.exists()
    path.unlink()
    assert archive.wanted() == (place == "file")


def test_an_archive_that_is_a_link_is_not_used(archive: ClassArchive) -> None:
    path = made(archive)
    path.rename(archive.folder / "elsewhere")
    path.symlink_to(archive.folder / "elsewhere")
    assert archive.find() is None


def test_an_archive_whose_time_cannot_be_set_is_used(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of root's in an image, or on a disk that can only be read."""
    path = made(archive)

    def refuse(*_: object) -> None:
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(os, "utime", refuse)
    assert archive.find() == path


@pytest.mark.parametrize("rest", ["1b58", "1b58-(copy)", "1b58-0000000g"])
def test_a_file_with_a_name_that_tells_no_checksum_is_no_archive(archive: ClassArchive, rest: str) -> None:
    stranger = archive.folder / f"{archive.name}-{rest}.jsa"
    stranger.write_bytes(b"x")
    assert archive.find() is None
    assert archive.wanted()
    assert stranger.exists()


@pytest.mark.parametrize("choice", ["~nobody-of-this-name/jvm", "a\0b"])
def test_a_folder_that_cannot_be_only_means_that_there_is_no_archive(choice: str) -> None:
    assert folder_of(choice) is None


def test_an_attempt_that_takes_too_long_ends_as_one_that_failed(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_builder.os, "nice", lambda _: 0)
    monkeypatch.setattr(archive_builder, "_first_to_go", lambda: None)
    monkeypatch.setattr(archive_builder, "_make", lambda _: (signal.raise_signal(signal.SIGALRM), time.sleep(30)))
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM)
    try:
        archive_builder.main(str(archive.folder), archive.name)
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGALRM, before[1])
    assert "TimeoutError" in archive.failure.read_text()


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="Linux only")
def test_the_process_that_makes_it_is_the_first_to_go_where_memory_gets_short() -> None:
    code = f"from {module.BUILDER} import _first_to_go; _first_to_go(); print(open('/proc/self/oom_score_adj').read())"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert answer.stdout.strip() == "1000"


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
    monkeypatch.setattr(archive_builder.signal, "signal", lambda *_: None)
    monkeypatch.setattr(archive_builder, "_first_to_go", lambda: None)
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
    for word in ("false", "No", "off", "0"):
        monkeypatch.setenv(module.VARIABLE, word)
        assert folder_of(True) is None
        assert folder_of(word) is None
    monkeypatch.delenv("CI")
    for word in ("true", "Yes", "on", "1"):
        monkeypatch.setenv(module.VARIABLE, word)
        assert folder_of(True) == folder_of(word) == tmp_path / "xdg" / "dbt-lakehouse"
    monkeypatch.setenv("XDG_CACHE_HOME", "xdg")
    assert folder_of(True) == tmp_path / ".cache" / "dbt-lakehouse"


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


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has mapped is read from /proc")
def test_an_archive_that_java_does_without_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(module.logger, "debug", told.append)
    used, other = tmp_path / "used.jsa", tmp_path / "other.jsa"
    used.write_bytes(b"x" * 4096)
    with used.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        module.tell_refused(used, os.getpid())
        assert not told
        module.tell_refused(other, os.getpid())
    assert str(other) in told[0]
    module.tell_refused(other, 2**30)  # no such process: nothing is known
    assert len(told) == 1


def test_another_java_or_a_jar_that_changed_is_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "jars" / "spark-core.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"1")
    names = [archive_for(tmp_path, java, tmp_path).name for java in ("17.0.1", "17.0.2")]
    jar.write_bytes(b"12")
    names.append(archive_for(tmp_path, "17.0.2", tmp_path).name)
    assert len(set(names)) == 3
    layer = int(jar.stat().st_mtime)  # what an image keeps of it
    os.utime(jar, ns=(layer * 10**9, layer * 10**9 + 5))
    names.append(archive_for(tmp_path, "17.0.2", tmp_path).name)
    assert names[3] == names[2]
    assert archive_for(tmp_path / "a:b", "17.0.2", tmp_path) is None
    assert archive_for(tmp_path, "17.0.2", tmp_path / "nowhere") is None


def test_the_users_java_options_stay_and_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.jsa"
    options = local.start_conf({local.JAVA_OPTIONS: "-Xlog:cds=info -Dmine=1"}, path)[local.JAVA_OPTIONS]
    assert f"-XX:SharedArchiveFile={path}" in options
    assert options.endswith("-Xlog:cds=info -Dmine=1")
    for own in ("-XX:SharedArchiveFile=/mine.jsa", "-Xshare:off", "-XX:ArchiveClassesAtExit=/mine.jsa"):
        assert archive_options(path, own) == ""
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", own)
        assert archive_options(path, "") == ""
        monkeypatch.delenv("JAVA_TOOL_OPTIONS")
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
