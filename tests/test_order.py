"""Instants are compared in one place: `lakehouse_engine/model/order.py`. Elsewhere no `<`, sorting or arithmetic of their times."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.imports import modules

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "lakehouse_engine"
ADAPTER = ROOT / "dbt"
ORDER = ENGINE / "model" / "order.py"

TIMES = re.compile(
    r"_?(\w+_)?(instants?(_times?)?|requested_times?|completed_at|replaced_at|boundary|told_to|as_of|savepoint(ed|s)?|moments?)"
    r"|_?(times?|since|target|writers?|newest|oldest|latest|earliest|previous|proven|stays)"
)
"""Names that times of instants have."""

ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
SORTING = {"sorted", "min", "max", "sort", "bisect", "bisect_left", "bisect_right", "insort"}


def name_of(node: ast.expr) -> str | None:
    """The name of what an expression is about: of `self.boundary`, `boundary[-1]`, `str(boundary)` or `boundary or ""`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, (ast.Subscript, ast.Starred)):
        return name_of(node.value)
    if isinstance(node, ast.Call) and name_of(node.func) == "str" and node.args:
        return name_of(node.args[0])
    return name_of(node.values[0]) if isinstance(node, ast.BoolOp) else None


def is_time(node: ast.expr) -> bool:
    name = name_of(node)
    return name is not None and TIMES.fullmatch(name) is not None


def members(node: ast.expr) -> Iterator[ast.expr]:
    """What a collection consists of, as far as its expression says."""
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield from members(node.elt)
    elif isinstance(node, (ast.List, ast.Set, ast.Tuple)):
        yield from (found for one in node.elts for found in members(one))
    elif isinstance(node, ast.BinOp):
        yield from (*members(node.left), *members(node.right))
    elif isinstance(node, ast.Lambda):
        yield from members(node.body.elts[0] if isinstance(node.body, ast.Tuple) else node.body)
    else:
        yield node


def compares(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        pairs = zip(node.ops, operands, operands[1:], strict=False)
        return any(isinstance(operator, ORDERING) and (is_time(left) or is_time(right)) for operator, left, right in pairs)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr != "sort":
            return False  # of an order, or of an array
        name, key = name_of(node.func), [word.value for word in node.keywords if word.arg == "key"]
        if name == "int":
            return any(map(is_time, node.args))
        given = [node.func.value] if isinstance(node.func, ast.Attribute) else node.args
        return name in SORTING and any(is_time(one) for found in (key or given) for one in members(found))
    if isinstance(node, ast.JoinedStr):
        pairs = zip(node.values, node.values[1:], strict=False)
        return any(
            isinstance(left, ast.FormattedValue)
            and is_time(left.value)
            and isinstance(right, ast.Constant)
            and str(right.value)[:1].isdigit()
            for left, right in pairs
        )
    return False


def findings(path: Path, root: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    lines = sorted({node.lineno for node in ast.walk(ast.parse(text)) if compares(node)})  # type: ignore[attr-defined]
    return [f"{path.relative_to(root)}:{line}: {text.splitlines()[line - 1].strip()}" for line in lines]


def test_times_of_instants_are_compared_by_the_order_alone() -> None:
    asked = [*(path for path in modules(ENGINE) if path != ORDER), *modules(ADAPTER)]
    assert [finding for path in asked for finding in findings(path, ROOT)] == []


@pytest.mark.parametrize(
    "text",
    [
        "found = instant.requested_time > target",
        "found = archived.boundary < one.number",
        "found = begin < times[-1] <= end",
        "found = str(previous) >= begin",
        "found = (since or begin) < begin",
        "found = max(base.instant_time, '')",
        "found = max(writers)",
        "found = sorted(instants, key=lambda one: one.requested_time)",
        "found = sorted(logs, key=lambda one: (one.base_instant, one.path))",
        "found = sorted(one.requested_time for one in timeline)",
        "found = sorted({*savepointed, 'x'} - gone)",
        "instants.sort()",
        "found = int(start.requested_time) - 1",
        "found = f'{target}0'",
    ],
)
def test_the_walk_sees_a_comparison(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    assert findings(path, tmp_path) == [f"bad.py:1: {text}"]


@pytest.mark.parametrize(
    "text",
    [
        "found = instant.requested_time == target",
        "found = order.is_after(instant.requested_time, target)",
        "found = order.sorted(one.requested_time for one in timeline)",
        "found = len(instants) > 3",
        "found = sorted(path for path, time in found)",
        "found = sorted(logs, key=lambda one: (one.path, one.base_instant))",
        "found = f'{target} 0'",
    ],
)
def test_the_walk_passes_over_what_compares_no_times(tmp_path: Path, text: str) -> None:
    path = tmp_path / "good.py"
    path.write_text(text)
    assert findings(path, tmp_path) == []
