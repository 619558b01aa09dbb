"""dbt-tests-adapter as a table of documentation: `python -m tests.dbt.conformance` writes docs/conformance.md.

Every base class of it that has tests is wired by a class of tests/dbt/functional, which runs them, or stands in `REASONS`. The table is
made of the classes alone: that what it calls wired passes, is what the lane of the adapter holds to.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.dbt.conformance_reasons import FILLED_IN, REASONS
from tests.support.connect_server import is_classic_only

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "conformance.md"
SUITE, OURS = "dbt.tests.adapter", "tests.dbt.functional"
RUNS = ("as it is", "with more checks", "replaced")
"""What may have become of a method that is run."""


@dataclass(frozen=True)
class Method:
    """A test of a base class: `state` is one of `RUNS`, `skipped` or `not wired`; `why` is said for all but the first two.

    `over_connect`: whether it is run over Spark Connect as well.
    """

    name: str
    state: str
    why: str = ""
    over_connect: bool = True


@dataclass(frozen=True)
class Row:
    """A base class, named below dbt.tests.adapter; the names of our classes that run it; its methods."""

    folder: str
    base: str
    wired: tuple[str, ...]
    note: str
    methods: tuple[Method, ...]


def _modules(package: str) -> Iterator[ModuleType]:
    root = Path(next(iter(importlib.import_module(package).__path__)))
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[-1] not in ("__init__", "conftest"):
            yield importlib.import_module(".".join((package, *parts)))


def _classes(package: str) -> list[type]:
    found = [item for module in _modules(package) for item in vars(module).values() if inspect.isclass(item)]
    return [item for item in dict.fromkeys(found) if item.__module__.startswith(f"{package}.")]


def tests_of(kind: type) -> list[str]:
    return [name for name in dir(kind) if name.startswith("test_") and callable(getattr(kind, name))]


@cache
def bases() -> list[type]:
    """The classes of the suite that an adapter subclasses: `Test...` are those of Postgres."""
    return sorted((one for one in _classes(SUITE) if tests_of(one) and not one.__name__.startswith("Test")), key=path_of)


def path_of(base: type) -> str:
    return f"{base.__module__.removeprefix(SUITE + '.')}.{base.__name__}"


@cache
def wiring() -> Mapping[type, list[type]]:
    """Our classes by the base classes that they stand for: the last ones of the suite that they come from, not what those come from."""
    found: dict[type, list[type]] = {}
    known = set(bases())
    for ours in _classes(OURS):
        if ours.__name__.startswith("Test"):
            theirs = [base for base in ours.__mro__ if base in known]
            for base in theirs:
                if not any(other is not base and issubclass(other, base) for other in theirs):
                    found.setdefault(base, []).append(ours)
    return found


def _for(base: type) -> list[type]:
    """Our classes that stand for a base class; for one that is there to be filled in, those of the classes that do."""
    if path_of(base) not in FILLED_IN:
        return wiring().get(base, [])
    return [ours for other in bases() if issubclass(other, base) for ours in wiring().get(other, [])]


def rows() -> list[Row]:
    """One for each base class. Raises `ValueError` where one is neither wired nor has a reason, or has a reason and is wired."""
    found = [_row(base, _for(base)) for base in bases()]
    unknown = (set(REASONS) | set(FILLED_IN)) - {path_of(base) for base in bases()}
    wrong = [row for row in found if (f"{row.folder}.{row.base}" in REASONS) == bool(row.wired)]
    if wrong or unknown:
        names = [f"{row.folder}.{row.base} is {'wired and' if row.wired else 'neither wired nor'} in REASONS" for row in wrong]
        raise ValueError("; ".join([*names, *(f"{name} of REASONS is no class of the suite" for name in sorted(unknown))]))
    return found


def _row(base: type, ours: Sequence[type]) -> Row:
    folder, _, name = path_of(base).rpartition(".")
    if not ours:
        why = REASONS.get(path_of(base), "")
        return Row(folder, name, (), why, tuple(Method(one, "not wired", why) for one in tests_of(base)))
    note = next((text for one in ours if (text := _doc(one))), "") if path_of(base) not in FILLED_IN else ""
    best = [min((_method(one, test) for one in ours), key=lambda method: _rank(method.state)) for test in tests_of(base)]
    names = (FILLED_IN[path_of(base)],) if path_of(base) in FILLED_IN else tuple(one.__name__ for one in ours)
    return Row(folder, name, names, note, tuple(best))


def _rank(state: str) -> int:
    return RUNS.index(state) if state in RUNS else len(RUNS)


def _method(ours: type, name: str) -> Method:
    """What our class makes of a method. Raises `ValueError` where it replaces one and does not say why."""
    function = getattr(ours, name)
    marks = [*getattr(ours, "pytestmark", []), *getattr(function, "pytestmark", [])]
    skipped = _skip(marks)
    if skipped is not None:
        return Method(name, "skipped", skipped)
    return replace(_run(ours, name, function), over_connect=not any(is_classic_only(mark) for mark in marks))


def _run(ours: type, name: str, function: Any) -> Method:
    owner = next(one for one in ours.__mro__ if name in vars(one))
    if not owner.__module__.startswith(f"{OURS}."):
        return Method(name, "as it is")
    if f"super().{name}(" in inspect.getsource(function):
        return Method(name, "with more checks")
    why = _text(function) or _doc(owner) or _doc(ours)
    if not why:
        raise ValueError(f"{ours.__name__}.{name} replaces a test of dbt's suite: its docstring, or its class's, has to say why")
    return Method(name, "replaced", why)


def _skip(marks: Sequence[Any]) -> str | None:
    """The reason, where this dbt-core has it skipped."""
    found = [mark for mark in marks if mark.name == "skip" or (mark.name == "skipif" and any(mark.args))]
    return str(found[0].kwargs["reason"]) if found else None


def _doc(kind: type) -> str:
    """A docstring of the class itself or of one of ours that it comes from."""
    for one in kind.__mro__:
        if one.__module__.startswith(f"{OURS}.") and vars(one).get("__doc__"):
            return _text(one)
    return ""


def _text(item: Any) -> str:
    return " ".join((inspect.cleandoc(item.__doc__ or "").split("\n\n")[0]).split())


def written(found: Sequence[Row] | None = None) -> str:
    """The document."""
    found = rows() if found is None else found
    methods = [method for row in found for method in row.methods]
    runs = {state: sum(method.state == state for method in methods) for state in (*RUNS, "skipped", "not wired")}
    wired = sum(bool(row.wired) for row in found)
    run = [(row, method) for row in found for method in row.methods if method.state in RUNS]
    others = [f"`{row.base}.{method.name}`" for row, method in run if not method.over_connect]
    connect = str(len(run) - len(others))
    lines = [
        "# What of dbt's own suite runs",
        "",
        "`make docs` writes this page from the classes of `tests/dbt/functional`; `make dbt` runs them all, `make test` as many as its"
        " time allows.",
        f"dbt-tests-adapter {version('dbt-tests-adapter')} has {len(found)} base classes with {len(methods)} test methods for adapters.",
        f"{wired} classes are wired. Of the methods {sum(runs[state] for state in RUNS)} run: {runs['as it is']} as they are, "
        f"{runs['with more checks']} with more checks, {runs['replaced']} with another body, which is told below.",
        f"{runs['skipped']} are skipped and {runs['not wired']} not wired, with the reason.",
        "",
        f"Over Spark Connect {connect if others else 'the same ' + connect} run (`make connect`)."
        + (f" Not there: {', '.join(others)}." if others else ""),
        "With the warehouse in a bucket, too (`make object-store`): all but those that `tests/object_store/selection.py` names with"
        " the reason.",
        "The suite's models and seeds are Postgres' in many classes; with those in Spark's words, a method still runs as it is.",
    ]
    for folder, members in groupby(found, lambda row: row.folder.partition(".")[0]):
        lines += ["", f"## {folder}", "", "| Class | Methods | Wired by | State |", "|---|---|---|---|"]
        lines += [_line(row) for row in members]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    told = [f"{_names(row, state, why)}: {text}" for state, why, text in _states(row)]
    is_new = row.wired and row.note and not any(row.note in one for one in told)
    text = "; ".join([*told, *([row.note] if is_new else [])])
    wired = ", ".join(f"`{name}`" if name.isidentifier() else name for name in row.wired) or "-"
    cells = (f"`{row.base}`", str(len(row.methods)), wired, text.replace("|", "\\|"))
    return f"| {' | '.join(cells)} |"


def _states(row: Row) -> list[tuple[str, str, str]]:
    pairs = list(dict.fromkeys((method.state, method.why) for method in row.methods))
    return [(state, why, f"{state}{f' ({why})' if why else ''}") for state, why in pairs]


def _names(row: Row, state: str, why: str) -> str:
    names = [method.name for method in row.methods if (method.state, method.why) == (state, why)]
    return "all" if len(names) == len(row.methods) else ", ".join(f"`{name}`" for name in names)


def main() -> None:
    DOCUMENT.write_text(written(), encoding="utf-8")


if __name__ == "__main__":
    main()
