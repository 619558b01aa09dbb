"""How far a test is from a change: the number of imports between the test's module and the nearest changed file.

Many tests of a module go through a facade, from which everything is far. So tests in the folder of a changed module's layer count as near.
"""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from tests.support.imports import imported_names, modules, parse

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("lakehouse_engine", "dbt", "tests", "integration_tests", "benchmarks")
FAR = 99
"""The distance of a test from a change that it does not import."""
NEAR = 2.0
"""Tests within so many imports of a change are tests of it; so are those in the folder of its layer, however far they are by imports."""
HOME = 1.5
"""Distance of tests in the folder of a changed module's layer that do not import the module: nearer than those that import an importer."""
OWN = 0.5
"""Distance of tests that are named after a changed module: others that import it may be many, and about something else."""
LANES = {
    "tests/dbt/": "dbt/adapters/lakehouse/impl.py",
    "tests/object_store/test_dbt": "dbt/adapters/lakehouse/impl.py",
    "tests/cluster/test_demo": "dbt/adapters/lakehouse/impl.py",
    "integration_tests/": "dbt/adapters/lakehouse/impl.py",
    "tests/spark/": "lakehouse_engine/lakehouse.py",
    "tests/interop/": "lakehouse_engine/table.py",
    "tests/conformance/": "lakehouse_engine/table.py",
}
"""What the tests below a path run without importing it."""


def changed_files(root: Path = ROOT) -> list[str]:
    """Files that differ from the newest commit of more than a day before HEAD, with those that are not committed."""
    newest = _git(root, "show", "-s", "--format=%ct", "HEAD")
    if not newest:
        return []
    base = _git(root, "rev-list", "-1", f"--before={int(newest) - 86_400}", "HEAD")
    committed = _git(root, "diff", "--name-only", base, "HEAD") if base else ""
    return sorted({*committed.splitlines(), *_git(root, "diff", "--name-only", "HEAD").splitlines()})


def distances(tests: Iterable[str], changed: Iterable[str], root: Path = ROOT) -> dict[str, float]:
    """By test file the length of the shortest chain of imports to a changed file; `FAR` where there is none. At most `HOME` for tests in
    the folder of a changed module's layer, and `OWN` for those of them that are named after the module.

    A macro of the adapter is taken for its `impl.py`, a `conftest.py` for a file that the tests beside and below it import.
    """
    changed = list(changed)
    imports = import_graph(root)
    importers: dict[str, set[str]] = {}
    for path, names in imports.items():
        for name in names:
            importers.setdefault(name, set()).add(path)
    start = {"dbt/adapters/lakehouse/impl.py" if one.startswith("dbt/include/") else one for one in changed}
    found = dict.fromkeys(start, 0)
    waiting = deque(start)
    while waiting:
        path = waiting.popleft()
        for importer in importers.get(path, ()):
            if importer not in found:
                found[importer] = found[path] + 1
                waiting.append(importer)
    homes = {(_home(path), _own(path)) for path in changed if _home(path)}
    return {test: min(found.get(test, FAR), _by_place(test, homes)) for test in tests}


def _by_place(test: str, homes: Iterable[tuple[str, str]]) -> float:
    """Distance of a test by its folder and name."""
    return min((OWN if test.endswith(own) else HOME for home, own in homes if test.startswith(home)), default=FAR)


def _own(path: str) -> str:
    """End of the path of a test that is named after a module."""
    return f"/test_{path.rpartition('/')[2]}"


def _home(path: str) -> str:
    """Folder of the tests of a module's layer; "" for a file without one."""
    top, _, rest = path.partition("/")
    if top == "dbt":
        return "tests/dbt/unit/"
    return f"tests/unit/{rest.split('/')[0]}/" if top == "lakehouse_engine" and "/" in rest else ""


def import_graph(root: Path) -> dict[str, set[str]]:
    """By file, the files of this project that it imports, with what `LANES` and `conftest.py` add."""
    files = {path.relative_to(root).as_posix() for folder in SOURCES for path in modules(root / folder)}
    names = {_module_name(path): path for path in files}
    graph = {}
    for path in files:
        tree, package = parse(root / path, root)
        found = {names[name] for _, full in imported_names(tree, package) for name in (full, full.rpartition(".")[0]) if name in names}
        found |= {fixture for fixture in _conftests(path) if fixture in files}
        graph[path] = (found | _runs(path, files)) - {path}
    return graph


def _runs(path: str, files: set[str]) -> set[str]:
    return {target for lane, target in LANES.items() if path.startswith(lane) and target in files}


def _conftests(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join([*parts[:count], "conftest.py"]) for count in range(1, len(parts) + 1)]


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _git(root: Path, *arguments: str) -> str:
    asked = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""
