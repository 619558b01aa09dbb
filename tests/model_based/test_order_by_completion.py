"""All states of the protocol of versions 8 and 9: nothing is violated, and without any one of its rules something is."""

from __future__ import annotations

import pytest

from tests.model_based.order_by_completion import SCENARIOS, Rules, Scenario, explore

BY_NAME = {case.name: case for case in SCENARIOS}

LEFT_OUT = [
    (["groups"], "two base files of one group", "an acknowledged write is lost"),
    (["groups"], "a base file and logs", "writes took effect in another order than they were acknowledged in"),
    (["plans"], "base files and a compaction", "an acknowledged write is lost"),
    (["keys"], "one new key", "a key is stored twice"),
    (["archived"], "archiving", "an acknowledged write is lost"),
    (["standing"], "writers that pause", "an acknowledged write is lost"),
    # A restore that does not wait is found by the writers that it takes by surprise, and the other way round.
    (["restored", "alone"], "a savepoint and a restore", "a write shows that was not acknowledged, or was taken back"),
    (["alive"], "two base files of one group", "a live writer is taken back"),
    (["unfinished"], "cleaning", "an acknowledged write is lost"),
    (["pinned"], "cleaning", "a savepoint has other rows than it had"),
    (["completion"], "a base file and logs", "a moment has other rows than it had"),
    (["completion"], "other groups", "a savepoint has other rows than it had"),
]


@pytest.mark.parametrize("case", SCENARIOS, ids=lambda case: case.name)
def test_nothing_is_violated_in_any_state(case: Scenario) -> None:
    states, found = explore(case, Rules())
    assert not found
    assert states > 50


@pytest.mark.parametrize(("rules", "name", "violation"), LEFT_OUT, ids=lambda value: value if isinstance(value, str) else "+".join(value))
def test_each_rule_is_needed(rules: list[str], name: str, violation: str) -> None:
    _, found = explore(BY_NAME[name], Rules(**dict.fromkeys(rules, False)))
    assert violation in found, found
    print(*found[violation], sep="\n")


def test_every_rule_is_left_out_once() -> None:
    assert {rule for rules, _, _ in LEFT_OUT for rule in rules} == set(Rules._fields)
