"""Which kinds of table a run of the zoo visits, and the documentation that is made of them; no JVM."""

from __future__ import annotations

import pytest

from tests.interop.zoo.kinds import ALL, EVERY, KINDS
from tests.interop.zoo.report import DOCUMENT, written
from tests.interop.zoo.untried import UNTRIED
from tests.interop.zoo.wanted import wanted


def test_all_kinds_that_were_tried_are_visited_unless_others_are_asked_for() -> None:
    assert set(wanted("")) == set(KINDS)
    assert set(wanted("untried")) == {name for names in UNTRIED.values() for name in names}
    first, second = list(EVERY)[:2]
    assert wanted(f"{second},{first}") == [second, first]
    with pytest.raises(ValueError, match="kind-x"):
        wanted("kind-x")


def test_no_two_kinds_have_one_name() -> None:
    assert len(EVERY) == sum(len(group.KINDS) for group in ALL)


def test_what_is_untried_is_in_the_zoo_and_not_among_what_was_tried() -> None:
    for maker, names in UNTRIED.items():
        assert names <= {name for name, kind in EVERY.items() if maker in kind.makers}
        assert not names & {name for name, kind in KINDS.items() if maker in kind.makers}


def test_the_table_in_the_documentation_is_that_of_the_zoo() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert written(text) == text, "run `make docs`"
