"""The direction of dependency, held by a walk over every import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.imports import imported_names, modules
from tests.support.imports import parse as parse_below

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "lakehouse_engine"
ADAPTER = ROOT / "dbt"

# Bottom first. A module imports from lines above its own only; names that share a line are siblings and do not import each other.
LAYERS = (
    ("errors", "compat", "cache", "loading"),
    ("options",),
    ("model",),
    ("format", "storage", "record", "sorting"),
    ("engine",),
    ("timeline",),
    ("manifest",),
    ("view",),
    ("files",),
    ("metadata_table",),
    ("read",),
    ("index",),
    ("commit",),
    ("write",),
    ("services",),
    ("undo",),
    ("verify",),
    ("repair",),
    ("table_services",),
    ("catalog",),
    ("sql",),
    ("spark",),
    ("table",),
    ("statements",),
    ("lakehouse",),
    ("api",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ROOMS = {
    "write": (
        ("source",),
        ("tasks",),
        ("batch",),
        ("request",),
        ("context", "result"),
        ("effect",),
        ("batches", "locate"),
        ("plan", "concurrency"),
        ("shares",),
        ("routes",),
        ("operation", "create", "alter", "partitions"),
    ),
    "services": (("executor",), ("compact", "clean"), ("archive", "clone", "cluster"), ("metadata", "hbase_index"), ("inline", "versions")),
}
"""Bottom first: what a write goes through, from its end; services above what runs them."""
MAY_IMPORT_PYSPARK = {"spark", "table", "statements", "lakehouse", "api"}
API = "lakehouse_engine.api"
LOADED_WHEN_USED = {"dbt.adapters.lakehouse.writing.seed_columns"}
"""Modules of the adapter that import Arrow, which dbt would wait for at its start: they alone are imported inside functions."""


def parse(path: Path) -> tuple[ast.Module, list[str]]:
    return parse_below(path, ROOT)


def layer_of(name: str) -> str | None:
    """`lakehouse_engine.view.slicing` -> `view`; None for the package itself and for anything that is not ours."""
    parts = name.split(".")
    return parts[1] if parts[0] == "lakehouse_engine" and len(parts) > 1 and parts[1] in RANK else None


def own_layer(path: Path) -> str:
    return path.relative_to(ENGINE).with_suffix("").parts[0]


def layer_violations(path: Path) -> list[str]:
    own = own_layer(path)
    if own == "__init__":
        return []
    if own not in RANK:
        return [f"{path.relative_to(ROOT)}: '{own}' is in no layer; give it a line in LAYERS"]
    tree, package = parse(path)
    found = []
    for line, name in imported_names(tree, package):
        other = layer_of(name)
        where = f"{path.relative_to(ROOT)}:{line}"
        if other is None:
            if name.split(".")[0] == "lakehouse_engine":
                found.append(f"{where}: imports {name} from the package itself; import it from the module that defines it")
        elif other != own and RANK[other] >= RANK[own]:
            found.append(f"{where}: {own} imports {other}, which is not below it")
    return found


def room_violations(path: Path) -> list[str]:
    """Imports within a layer that has rooms that do not go down."""
    layer = own_layer(path)
    rank = {name: number for number, names in enumerate(ROOMS[layer]) for name in names}
    own = path.relative_to(ENGINE / layer).with_suffix("").parts[0]
    if own == "__init__":
        return []
    tree, package = parse(path)
    rooms = [(line, name.split(".")[2]) for line, name in imported_names(tree, package) if name.startswith(f"lakehouse_engine.{layer}.")]
    wrong = ((line, room) for line, room in rooms if room != own and rank[room] >= rank[own])
    return [f"{path.relative_to(ROOT)}:{line}: {own} imports {room}, which is not below it" for line, room in wrong]


def function_local_imports(path: Path) -> list[str]:
    tree, package = parse(path)
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [
        f"{path.relative_to(ROOT)}:{line}: {name} is imported inside {function.name}()"
        for function in functions
        for line, name in imported_names(function, package)
        if name.startswith(("lakehouse_engine", "dbt.adapters.lakehouse")) and name.rpartition(".")[0] not in LOADED_WHEN_USED
    ]


def engine_modules_named(path: Path) -> list[str]:
    """Modules of the engine other than its API that a file of the adapter names: by imports, and in texts that something could import."""
    tree, package = parse(path)
    imported = [(line, name) for line, name in imported_names(tree, package) if name.split(".")[0] == "lakehouse_engine"]
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    named = [(node.lineno, node.value) for node in texts if re.fullmatch(r"lakehouse_engine(\.\w+)+", node.value)]
    others = ((line, name) for line, name in (*imported, *named) if name != API and not name.startswith(f"{API}."))
    return [f"{path.relative_to(ROOT)}:{line}: {name}" for line, name in others]


def lazy_packages() -> list[Path]:
    """`__init__` modules of packages whose modules are loaded when they are first used."""
    return [path for path in modules(ENGINE) if path.name == "__init__.py" and "modules_of(" in path.read_text(encoding="utf-8")]


def imports_from(path: Path, top: str) -> list[str]:
    tree, package = parse(path)
    return [f"{path.relative_to(ROOT)}:{line}: {name}" for line, name in imported_names(tree, package) if name.split(".")[0] == top]


def test_modules_import_only_from_layers_below_their_own() -> None:
    assert [finding for path in modules(ENGINE) for finding in layer_violations(path)] == []


def test_the_document_draws_these_layers() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = re.search(r"^```\n(cli .*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert drawn is not None
    lines = [re.split(r"  +", line)[0].split(" | ") for line in drawn.group(1).splitlines()]
    assert [set(line) for line in reversed(lines)] == [set(names) for names in LAYERS]


@pytest.mark.parametrize("layer", ROOMS)
def test_rooms_of_a_layer_import_only_from_rooms_below_their_own(layer: str) -> None:
    assert [finding for path in modules(ENGINE / layer) for finding in room_violations(path)] == []


def test_pyspark_is_imported_only_by_the_spark_package_and_what_stands_on_it() -> None:
    others = [path for path in modules(ENGINE) if own_layer(path) not in MAY_IMPORT_PYSPARK]
    assert [finding for path in others for finding in imports_from(path, "pyspark")] == []


# In a process of its own, where importing PySpark or dbt fails.
WITHOUT_SPARK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "dbt"):
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
import pyarrow as pa
import lakehouse_engine
for name in lakehouse_engine.__all__:
    getattr(lakehouse_engine, name)
house = lakehouse_engine.Lakehouse(sys.argv[1])
table = house.create_table("s.t", schema=pa.schema([("id", pa.int64())]), record_key=["id"], table_type="mor")
table.upsert(pa.table({"id": [1, 2]}), delete_keys=pa.table({"id": [3]}))
table.delete(pa.table({"id": [2]}))
table.compact()
house.clone("s.t", "s.u")
house.create_view("s.v", "select 1")
print(lakehouse_engine.HoodieTable.open(house.table("s.u").path).to_arrow().to_pydict())
try:
    house.sql("select 1")
except lakehouse_engine.LakehouseError as error:
    print(type(error).__name__)
print([name for name in ("pyspark", "py4j", "dbt") if name in sys.modules])
"""


def test_a_warehouse_without_a_session_needs_neither_pyspark_nor_dbt(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_SPARK, str(tmp_path)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert answer.stdout.splitlines() == ["{'id': [1]}", "MissingOptionError", "[]"], answer.stderr


def test_the_engine_never_imports_dbt() -> None:
    assert [finding for path in modules(ENGINE) for finding in imports_from(path, "dbt")] == []


def test_the_adapter_names_no_module_of_the_engine_but_its_api() -> None:
    assert [finding for path in modules(ADAPTER) for finding in engine_modules_named(path)] == []


@pytest.mark.parametrize("path", lazy_packages(), ids=lambda path: path.parent.name)
def test_packages_that_load_their_modules_when_used_import_them_for_type_checkers(path: Path) -> None:
    """mypy refuses what is used of such a package and not imported there, so that the test of the layers sees all of it."""
    tree, package = parse(path)
    own = ".".join(package)
    imported = {name.removeprefix(f"{own}.") for _, name in imported_names(tree, package) if name.startswith(f"{own}.")}
    assert set(import_module(own).__all__) == imported
    assert all(getattr(import_module(own), name).__name__ == f"{own}.{name}" for name in imported)


def test_no_first_party_import_hides_inside_a_function() -> None:
    assert [finding for folder in (ENGINE, ADAPTER) for path in modules(folder) for finding in function_local_imports(path)] == []


@pytest.mark.parametrize("folder", ["dbt", "dbt/adapters", "dbt/include"])
def test_namespace_folders_that_dbt_core_owns_carry_no_init_module(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize(
    ("module", "text", "finding"),
    [
        ("view/bad.py", "from lakehouse_engine.read.scan import ScanPlan", "view imports read"),
        ("format/bad.py", "import lakehouse_engine.storage.base", "format imports storage"),
        ("timeline/bad.py", "from ..view import slicing", "timeline imports view"),
        ("model/bad.py", "from lakehouse_engine import HoodieTable", "from the package itself"),
        ("helpers/bad.py", "", "in no layer"),
    ],
)
def test_the_walk_itself_sees_a_slip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, text: str, finding: str) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    monkeypatch.setattr(f"{__name__}.ENGINE", tmp_path / "lakehouse_engine")
    path = tmp_path / "lakehouse_engine" / module
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (found,) = layer_violations(path)
    assert finding in found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from lakehouse_engine.api import errors", []),
        ("from lakehouse_engine import api", []),
        ("from lakehouse_engine import HoodieTable", ["lakehouse_engine.HoodieTable"]),
        ("import lakehouse_engine.table", ["lakehouse_engine.table"]),
        ("named = 'lakehouse_engine.spark.schema'", ["lakehouse_engine.spark.schema"]),
    ],
)
def test_what_the_adapter_names_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, found: list[str]) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "bad.py"
    path.write_text(text)
    assert [finding.rpartition(" ")[2] for finding in engine_modules_named(path)] == found


def test_what_is_not_public_of_spark_is_asked_in_one_module() -> None:
    """Another Spark may have it otherwise, and Spark Connect has none of it."""
    private = re.compile(r"\._j(vm|df|sc|sparkSession|map|wrapped)\b|\bpy4j\b")
    found = [str(path.relative_to(ENGINE)) for path in sorted(ENGINE.rglob("*.py")) if private.search(path.read_text())]
    assert found == ["spark/internals.py"]
