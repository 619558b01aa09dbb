"""Which kinds of table a run of the zoo visits, and the documentation that is made of them; no JVM."""

from __future__ import annotations

import pytest

from tests.interop.zoo.kinds import ALL, EVERY, KINDS
from tests.interop.zoo.report import DOCUMENT, written
from tests.interop.zoo.share import SHARE
from tests.interop.zoo.untried import UNTRIED
from tests.support.shares import chosen

NAMES = [f"kind-{number}" for number in range(100)]


def test_the_shares_of_all_commits_are_the_whole_zoo() -> None:
    shares = {tuple(chosen(NAMES, "", f"{number:040x}", SHARE)) for number in range(500)}
    assert {len(share) for share in shares} <= {SHARE - 1, SHARE}
    assert sorted(name for share in shares for name in share) == sorted(NAMES)


def test_a_commit_has_the_same_share_every_time() -> None:
    assert chosen(NAMES, "", "c0ffee", SHARE) == chosen(NAMES, "", "c0ffee", SHARE) != []


def test_all_and_single_kinds_can_be_asked_for() -> None:
    assert chosen(NAMES, "all", "c0ffee", SHARE) == NAMES
    assert chosen(NAMES, "kind-7,kind-3", "c0ffee", SHARE) == ["kind-3", "kind-7"]
    with pytest.raises(ValueError, match="kind-x"):
        chosen(NAMES, "kind-x", "c0ffee", SHARE)


def test_no_two_kinds_have_one_name() -> None:
    assert len(EVERY) == sum(len(group.KINDS) for group in ALL)


def test_what_is_untried_is_in_the_zoo_and_in_no_share() -> None:
    for maker, names in UNTRIED.items():
        assert names <= {name for name, kind in EVERY.items() if maker in kind.makers}
        assert not names & {name for name, kind in KINDS.items() if maker in kind.makers}


def test_the_table_in_the_documentation_is_that_of_the_zoo() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert written(text) == text, "run `make docs`"
