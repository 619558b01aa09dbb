"""Tables as Hudi's users make them: read, continued, and read back by both Hudis; or refused by name, and then untouched.

A run visits all kinds that were tried, LAKEHOUSE_ZOO=untried those in `untried.py`, LAKEHOUSE_ZOO=<name>,<name> single kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.client import HudiJudge
from tests.interop.zoo.visit import Visit
from tests.interop.zoo.wanted import CANDIDATES, VISITED


def visits() -> list[object]:
    found = []
    for name in VISITED:
        for maker in CANDIDATES[name].makers:
            reason = CANDIDATES[name].outcome(maker).wrong
            marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            found.append(pytest.param(name, maker, id=f"{name}-{maker}", marks=marks))
    return found


@pytest.mark.parametrize(("name", "maker"), visits())
def test_a_table_of_hudi_is_read_and_continued_or_refused_by_name(
    hudis: Mapping[str, HudiJudge], name: str, maker: str, tmp_path: Path
) -> None:
    kind = CANDIDATES[name]
    other = next(version for version in hudis if version != maker)
    with ExitStack() as stack:
        judge = hudis[maker]
        if kind.own_jvm is not None:
            judge = stack.enter_context(HudiJudge(maker, memory="1g", conf=kind.own_jvm))
        visit = Visit(kind, judge, hudis[other], tmp_path)
        visit.make()
        if kind.outcome(maker).refused:
            visit.check_refused()
        else:
            visit.check_reads()
            visit.go_on()
