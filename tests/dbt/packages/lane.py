"""The integration projects of dbt packages, run over this adapter, and compared with what is known to fail and why.

Nothing of the packages is kept here: they are read from a folder of copies (LAKEHOUSE_PACKAGES), each under its dbt name, as `dbt_utils`.
A project gets its dependencies as `dbt deps` would leave them, in `dbt_packages`, and runs in a process of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
GOOD = ("success", "pass", "warn", "no-op")
"""Statuses of a node that did what it should; a test of severity warn is its author's choice."""
LEFT_OUT = shutil.ignore_patterns(".git", "target", "logs", "dbt_packages", "dbt_modules")
SPARK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}


@dataclass(frozen=True)
class Lane:
    """A package's project, and how it is run.

    `needs` are packages that it is run with, each under its dbt name; `dispatch` the packages that are asked first for macros of a
    package; `edits` a text of a file of the project and what takes its place, where it knows adapters by name; `commands` those of dbt.
    `inner` are packages that the project itself has in folders of their names, `settings` what is added to its dbt_project.yml, `files`
    what it is given, by path.
    """

    name: str
    package: str
    project: str = "integration_tests"
    needs: tuple[str, ...] = ()
    dispatch: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    edits: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = (("seed",), ("run",), ("test",))
    inner: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def packages(self) -> tuple[str, ...]:
        return (self.package, *self.needs)


@dataclass(frozen=True)
class Known:
    """A lane, and the nodes (`short`) that cannot work in it, each with the reason."""

    lane: Lane
    failing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a run: `failed` has each node that did not do what it should, with its message; `parents` what a node stands on."""

    passed: Mapping[str, str]
    failed: Mapping[str, str]
    parents: Mapping[str, list[str]]
    errors: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """By kind of node: how many passed, of how many."""
        all_of = Counter(kind_of(node) for node in (*self.passed, *self.failed))
        good = Counter(kind_of(node) for node in self.passed)
        return {kind: (good[kind], number) for kind, number in sorted(all_of.items())}


def kind_of(node: str) -> str:
    return node.partition(".")[0]


def short(node: str) -> str:
    """A node without its project: `model.dbt_utils_integration_tests.test_star` is `model.test_star`."""
    kind, _, name = node.split(".", 2)
    return f"{kind}.{name}"


def copies() -> Path | None:
    """The folder of copies that LAKEHOUSE_PACKAGES names; None where it names none, or one that is not there."""
    given = os.environ.get("LAKEHOUSE_PACKAGES")
    folder = (ROOT / given).resolve() if given else None
    return folder if folder is not None and folder.is_dir() else None


def digest_of(folder: Path) -> str:
    """What tells a copy from another version of its package: its macros, models and projects."""
    found = hashlib.sha256()
    files = (file for file in folder.rglob("*") if file.suffix in (".sql", ".yml", ".yaml", ".csv", ".py") and file.is_file())
    for file in sorted(files):
        relative = file.relative_to(folder)
        if not {"target", "logs", "dbt_packages", ".github", ".git"} & set(relative.parts):
            found.update(str(relative).encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def run(lane: Lane, source: Path, folder: Path) -> Outcome:
    """Run a lane from the copies in `source`, in a new `folder`. Raises `RuntimeError` with dbt's output where it gave no outcome."""
    lay_out(lane, source, folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DO_NOT_TRACK": "1", "LAKEHOUSE_JVM_CACHE": "false"}
    command = [sys.executable, "-m", "tests.dbt.packages.drive", str(folder)]
    with (folder / "output.txt").open("w", encoding="utf-8") as output:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, timeout=1800, check=False)
    written = folder / "outcomes.json"
    if done.returncode or not written.exists():
        raise RuntimeError(f"{lane.name}: no outcome:\n{(folder / 'output.txt').read_text(encoding='utf-8')[-4000:]}")
    told = json.loads(written.read_text(encoding="utf-8"))
    good = {node: "" for node, said in told["nodes"].items() if said["status"] in GOOD}
    bad = {node: f"{said['status']}: {said['message']}" for node, said in told["nodes"].items() if node not in good}
    return Outcome(good, bad, told["parents"], tuple(told["errors"]))


def lay_out(lane: Lane, source: Path, folder: Path) -> None:
    """Copy the project and its packages, and write its profile and commands."""
    shutil.copytree(source / lane.package / lane.project, folder, ignore=LEFT_OUT)
    for name in lane.packages:
        if source / name != source / lane.package / lane.project:
            shutil.copytree(source / name, folder / "dbt_packages" / name, ignore=LEFT_OUT)
    for name in lane.inner:
        shutil.move(folder / name, folder / "dbt_packages" / name)
    for name, text in lane.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for wanted in ("packages.yml", "package-lock.yml", "dependencies.yml"):
        (folder / wanted).unlink(missing_ok=True)
    project = folder / "dbt_project.yml"
    given = yaml.safe_load(project.read_text(encoding="utf-8"))
    first = [{"macro_namespace": name, "search_order": [given["name"], *order, name]} for name, order in lane.dispatch.items()]
    kept = [one for one in given.get("dispatch", ()) if one["macro_namespace"] not in lane.dispatch]
    whole = merged({**given, "dispatch": [*first, *kept]}, lane.settings)
    project.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    for name, (old, new) in lane.edits.items():
        text = (folder / name).read_text(encoding="utf-8")
        if old not in text:
            raise RuntimeError(f"{lane.name}: {name} has no {old!r} to replace")
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    target = {"type": "lakehouse", "schema": "packages", "warehouse": str(folder / "lakehouse"), "threads": 4, "spark_config": SPARK}
    profile = {given["profile"]: {"target": "lakehouse", "outputs": {"lakehouse": target}}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    (folder / "commands.json").write_text(json.dumps(lane.commands), encoding="utf-8")


def merged(given: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with another one added, mappings in both likewise."""
    return {
        **given,
        **{key: merged(given.get(key) or {}, value) if isinstance(value, Mapping) else value for key, value in added.items()},
    }


def findings(outcome: Outcome, known: Mapping[str, str]) -> list[str]:
    """What is not as it should be: `known` has the nodes (`short`) that cannot work, with the reason.

    A node that fails needs a reason, or stands on one that has one; a node with a reason has to fail.
    """
    listed = {node for node in (*outcome.passed, *outcome.failed) if short(node) in known}
    found = [f"dbt itself failed: {error}" for error in outcome.errors]
    found += [f"{short(node)} passes, and is listed as failing" for node in sorted(listed & set(outcome.passed))]
    found += [f"{name} is listed, and is no node" for name in sorted(set(known) - {short(node) for node in listed})]
    for node, message in sorted(outcome.failed.items()):
        if node not in listed and not any(other in listed for other in ancestors(node, outcome.parents)):
            found.append(f"{short(node)}: {message}")
    return found


def ancestors(node: str, parents: Mapping[str, list[str]]) -> Iterator[str]:
    """All that a node stands on, at any distance, each once."""
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
                yield parent
