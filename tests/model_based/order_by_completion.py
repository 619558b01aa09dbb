"""The commit protocol of table versions 8 and 9 as a small machine, all of whose states can be visited.

Writers look at the table and take an instant under the lock, write their files without it, and commit under it again. An instant shows from
its completion on. Of the base files of a group the one that was requested last counts; a log is of the newest slice that was begun before
the log was completed. What a write adds to a group is its own number, so a group's content is the order in which writes took effect: that
must be the order in which they were acknowledged.

`explore` visits the states breadth first, so that the first trace to a violation is a shortest one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

NEVER = 10**6


class Rules(NamedTuple):
    """What the protocol checks; each can be left out."""

    groups: bool = True
    """A group that was written since the look: the files are made again."""
    plans: bool = True
    """So is a group that a compaction was planned for since."""
    keys: bool = True
    """New keys on both sides."""
    archived: bool = True
    """What was completed since the look counts also where it was archived by then."""
    standing: bool = True
    """The instant has to be on the timeline still."""
    restored: bool = True
    """What was there at the look has to be there still."""
    alone: bool = True
    """A restore waits for live writers."""
    alive: bool = True
    """Recovery takes nothing back whose writer is known to be alive."""
    unfinished: bool = True
    """A clean keeps files of instants that are not completed."""
    pinned: bool = True
    """A clean keeps files of savepoints."""
    completion: bool = True
    """As of a moment is what was completed by then; else what was requested by then."""


class Writer(NamedTuple):
    """`makes` is a base file ("base"), a log ("log"), or a row of a new key in a group of its own ("new")."""

    makes: str
    group: str
    step: str = "away"
    time: int = 0
    seen: frozenset[int] = frozenset()
    planned: frozenset[int] = frozenset()
    found: str | None = None
    told: str = ""


class Base(NamedTuple):
    group: str
    time: int
    rows: tuple[int, ...]


class Log(NamedTuple):
    group: str
    time: int
    row: int


class State(NamedTuple):
    """`done` maps the requested time of what was completed to its moment; `who` to the writer. `archived` are those that went from the
    timeline. `acknowledged` are (writer, group where it wrote).
    """

    clock: int
    writers: tuple[Writer, ...]
    done: frozenset[tuple[int, int]] = frozenset()
    who: frozenset[tuple[int, int]] = frozenset()
    archived: frozenset[int] = frozenset()
    bases: frozenset[Base] = frozenset()
    logs: frozenset[Log] = frozenset()
    plan: tuple[int, tuple[Base, ...], bool] | None = None
    acknowledged: tuple[tuple[int, str], ...] = ()
    savepoint: tuple[int, tuple[tuple[str, tuple[int, ...]], ...]] | None = None
    as_of: tuple[int, tuple[tuple[str, tuple[int, ...]], ...]] | None = None
    restored: bool = False
    followed: tuple[int, frozenset[int]] = (0, frozenset())
    cleaned: bool = False


class Scenario(NamedTuple):
    """Who meets whom. `does`: what else happens; writers may die, or pause for longer than their heartbeat counts."""

    name: str
    writers: tuple[tuple[str, str], ...]
    does: frozenset[str] = frozenset()


def scenario(name: str, *writers: tuple[str, str], does: Iterable[str] = ()) -> Scenario:
    return Scenario(name, writers, frozenset(does))


SCENARIOS = (
    scenario("two base files of one group", ("base", "g"), ("base", "g"), does=["as of"]),
    scenario("two logs of one group", ("log", "g"), ("log", "g"), does=["as of"]),
    scenario("a base file and logs", ("base", "g"), ("log", "g"), ("log", "h"), does=["as of", "follow"]),
    scenario("other groups", ("base", "g"), ("base", "h"), ("log", "h"), does=["savepoint"]),
    scenario("one new key", ("new", "k"), ("new", "k"), ("log", "g")),
    scenario("logs and a compaction", ("log", "g"), ("log", "g"), does=["compact", "as of"]),
    scenario("base files and a compaction", ("log", "g"), ("base", "g"), ("log", "h"), does=["compact"]),
    scenario("a savepoint and a restore", ("base", "g"), ("base", "g"), ("log", "h"), does=["savepoint", "restore"]),
    scenario("logs, a compaction and a restore", ("log", "g"), ("log", "g"), does=["compact", "savepoint", "restore"]),
    scenario("cleaning", ("base", "g"), ("base", "g"), ("base", "h"), does=["clean", "savepoint"]),
    scenario("archiving", ("base", "g"), ("base", "g"), ("base", "g"), does=["archive"]),
    scenario("writers that die", ("base", "g"), ("log", "g"), ("base", "h"), does=["die"]),
    scenario("writers that pause", ("base", "g"), ("log", "g"), does=["pause"]),
)


def beginning(case: Scenario) -> State:
    """Two groups with a base file each, which one write made at 1."""
    bases = frozenset(Base(group, 1, ()) for group in ("g", "h"))
    return State(3, tuple(Writer(makes, group) for makes, group in case.writers), frozenset({(1, 2)}), bases=bases)


def moments(state: State) -> dict[int, int]:
    return dict(state.done)


def rows_of(state: State, group: str, rules: Rules, as_of: int = NEVER) -> tuple[int, ...]:
    """The content of a group at a moment."""
    shown = {time: moment for time, moment in state.done if (moment if rules.completion else time) <= as_of}
    bases = {base.time: base for base in state.bases if base.group == group and base.time in shown}
    planned = _planned_for(state, group)
    begun = {*bases, *({planned} if planned is not None and planned <= as_of else ())}
    if not bases:
        return _in_order(state, shown, [log for log in state.logs if log.group == group])
    newest = max(bases)
    logs = [log for log in state.logs if log.group == group and log.time in shown and _slice(begun, moments(state)[log.time]) >= newest]
    return bases[newest].rows + _in_order(state, shown, logs)


def _planned_for(state: State, group: str) -> int | None:
    if state.plan is None or state.plan[2] or all(base.group != group for base in state.plan[1]):
        return None
    return state.plan[0]


def _slice(begun: Iterable[int], moment: int) -> int:
    return max((time for time in begun if time <= moment), default=0)


def _in_order(state: State, shown: dict[int, int], logs: Iterable[Log]) -> tuple[int, ...]:
    return tuple(log.row for log in sorted(logs, key=lambda log: shown.get(log.time, NEVER)) if log.time in shown)


def view(state: State, rules: Rules, as_of: int = NEVER) -> tuple[tuple[str, tuple[int, ...]], ...]:
    groups = sorted({base.group for base in state.bases} | {log.group for log in state.logs})
    return tuple((group, rows) for group in groups if (rows := rows_of(state, group, rules, as_of)) or group in "gh")


def steps(state: State, case: Scenario, rules: Rules) -> Iterator[tuple[str, State]]:
    """What may happen next, and what comes of it."""
    for number, writer in enumerate(state.writers):
        yield from _steps_of(state, number, writer, case, rules)
    yield from _services(state, case, rules)


def _with(state: State, number: int, **change: object) -> State:
    writer = state.writers[number]._replace(**change)  # type: ignore[arg-type]
    return state._replace(writers=(*state.writers[:number], writer, *state.writers[number + 1 :]))


def _steps_of(state: State, number: int, writer: Writer, case: Scenario, rules: Rules) -> Iterator[tuple[str, State]]:
    name = f"writer {number}"
    if writer.step == "away":
        yield f"{name} begins at {state.clock}", _begun(_recovered(state), number, rules)
    if writer.step == "begun":
        yield f"{name} writes its files", _with(_filed(state, number, rules), number, step="filed")
    if writer.step == "filed":
        yield f"{name} commits", _committed(state, number, rules)
    if writer.step in ("begun", "filed") and "die" in case.does:
        yield f"{name} dies", _with(state, number, step="dead")
    if writer.step in ("begun", "filed") and "pause" in case.does and not writer.told:
        # Elsewhere nothing is known of it but its heartbeat, which is too old.
        yield f"{name} pauses and is taken back", _with(_without_files(state, writer.time), number, told="taken back")
    if writer.step in ("begun", "filed") and not rules.alive and not writer.told:
        yield f"{name} is taken back alive", _with(_without_files(state, writer.time), number, told="taken back alive")


def _recovered(state: State) -> State:
    for number, writer in enumerate(state.writers):
        if writer.step == "dead":
            state = _with(_without_files(state, writer.time), number, step="over", told="died")
    return state


def _without_files(state: State, time: int) -> State:
    return state._replace(
        bases=frozenset(base for base in state.bases if base.time != time), logs=frozenset(log for log in state.logs if log.time != time)
    )


def _begun(state: State, number: int, rules: Rules) -> State:
    """The look, the look-up of the key, and the instant: under one lock."""
    writer, planned = state.writers[number], frozenset() if state.plan is None else frozenset({state.plan[0]})
    found = _found(state, writer, rules)
    state = _with(state, number, step="begun", time=state.clock, seen=frozenset(moments(state)), planned=planned, found=found)
    return state._replace(clock=state.clock + 1)


def _found(state: State, writer: Writer, rules: Rules) -> str | None:
    """The group that has the key by now."""
    if writer.makes != "new":
        return None
    stored = [group for group, rows in view(state, rules) if rows and group.startswith(f"{writer.group}:")]
    return stored[0] if stored else None


def _target(state: State, number: int) -> str:
    writer = state.writers[number]
    if writer.makes != "new":
        return writer.group
    return writer.found or f"{writer.group}:{number}"


def _filed(state: State, number: int, rules: Rules) -> State:
    """The files of what was seen."""
    writer, group = state.writers[number], _target(state, number)
    if writer.told:
        return state  # what attempts write after they were closed, they remove
    if writer.makes == "log" or (writer.makes == "new" and writer.found):
        return state._replace(logs=state.logs | {Log(group, writer.time, number)})
    then = state._replace(done=frozenset(one for one in state.done if one[0] in writer.seen))
    if then.plan is not None and then.plan[0] not in writer.planned:
        then = then._replace(plan=None)
    return state._replace(bases=state.bases | {Base(group, writer.time, (*rows_of(then, group, rules), number))})


def _committed(state: State, number: int, rules: Rules) -> State:
    writer = state.writers[number]
    if _is_overtaken(state, number, rules):
        state = _begun(_without_files(_with(state, number, told=""), writer.time), number, rules)
        return _published(_filed(state, number, rules), number)
    return _published(state, number)


def _published(state: State, number: int) -> State:
    time, group = state.writers[number].time, _target(state, number)
    state = _with(state, number, step="over")
    return state._replace(
        clock=state.clock + 1,
        done=state.done | {(time, state.clock)},
        who=state.who | {(time, number)},
        acknowledged=(*state.acknowledged, (number, group)),
    )


def _is_overtaken(state: State, number: int, rules: Rules) -> bool:
    writer, group, authors = state.writers[number], _target(state, number), dict(state.who)
    if rules.standing and writer.told:
        return True
    known = {time for time, _ in state.done}
    if rules.restored and writer.seen - known:
        return True
    since = known - writer.seen - (frozenset() if rules.archived else state.archived)
    written = {_target(state, authors[time]) for time in since if time in authors}
    planned = state.plan is not None and state.plan[0] not in writer.planned and any(base.group == group for base in state.plan[1])
    keys = {state.writers[authors[time]].group for time in since if time in authors and state.writers[authors[time]].makes == "new"}
    return (
        (rules.groups and group in written)
        or (rules.plans and planned)
        or (rules.keys and writer.makes == "new" and writer.group in keys)
    )


def _services(state: State, case: Scenario, rules: Rules) -> Iterator[tuple[str, State]]:
    does, pending = case.does, [writer for writer in state.writers if writer.step in ("begun", "filed", "dead")]
    newest = max(moment for _, moment in state.done)
    if "as of" in does and state.as_of is None and newest > 2:
        yield f"a reader as of {newest}", state._replace(as_of=(newest, view(state, rules, newest)))
    if "savepoint" in does and state.savepoint is None:
        yield f"a savepoint at {newest}", state._replace(savepoint=(newest, view(state, rules, newest)))
    if "follow" in does and newest > state.followed[0]:
        read = frozenset(number for time, number in state.who if state.followed[0] < moments(state)[time] <= newest)
        yield f"a follower reads up to {newest}", state._replace(followed=(newest, state.followed[1] | read))
    if "compact" in does and state.plan is None and any(log.time in moments(state) for log in state.logs):
        merged = tuple(Base(g, state.clock, rows_of(state, g, rules)) for g in ("g", "h") if any(log.group == g for log in state.logs))
        yield f"a compaction is planned at {state.clock}", state._replace(plan=(state.clock, merged, False), clock=state.clock + 1)
    if state.plan is not None and not state.plan[2]:
        time, merged, _ = state.plan
        # It shows when it was planned.
        done = state._replace(plan=(time, merged, True), bases=state.bases | {*merged}, done=state.done | {(time, time)})
        yield f"the compaction {time} is completed", done
    if "clean" in does and not state.cleaned:
        yield "a clean", state._replace(bases=frozenset(_kept(state, rules)), cleaned=True)
    if "archive" in does:
        oldest = min((writer.time for writer in pending), default=NEVER)
        old = [time for time, _ in state.done if time < oldest and time not in state.archived and time != 1]
        if old:
            yield f"{min(old)} is archived", state._replace(archived=state.archived | {min(old)})
    waits = rules.alone and any(writer.step != "dead" for writer in pending)
    if "restore" in does and state.savepoint is not None and not state.restored and newest > state.savepoint[0] and not waits:
        yield f"a restore to {state.savepoint[0]}", _restored(state, state.savepoint[0])


def _kept(state: State, rules: Rules) -> Iterator[Base]:
    shown, at = moments(state), state.savepoint[0] if state.savepoint is not None else 0
    for base in state.bases:
        same = [other.time for other in state.bases if other.group == base.group and other.time in shown]
        pinned = [time for time in same if shown[time] <= at]
        is_newest = base.time == max(same, default=0) or (base.time not in shown and rules.unfinished)
        if is_newest or (rules.pinned and pinned and base.time == max(pinned)):
            yield base


def _restored(state: State, to: int) -> State:
    gone = {time for time, moment in state.done if moment > to}
    for time in gone:
        state = _without_files(state, time)
    plan = state.plan if state.plan is None or state.plan[0] <= to else None
    left = {number for time, number in state.who if time not in gone}
    return state._replace(
        done=frozenset(one for one in state.done if one[0] not in gone),
        who=frozenset(one for one in state.who if one[0] not in gone),
        acknowledged=tuple(one for one in state.acknowledged if one[0] in left),
        plan=plan,
        restored=True,
        as_of=None,
    )


def violations(state: State, case: Scenario, rules: Rules) -> Iterator[str]:
    """What must not be."""
    whole = Rules()
    for group, rows in view(state, whole):
        wanted = tuple(number for number, where in state.acknowledged if where == group)
        if set(wanted) - set(rows):
            yield "an acknowledged write is lost"
        elif set(rows) - set(wanted):
            yield "a write shows that was not acknowledged, or was taken back"
        elif rows != wanted:
            yield "writes took effect in another order than they were acknowledged in"
    shown = {group for group, _ in view(state, whole)}
    if any(where not in shown for _, where in state.acknowledged):
        yield "an acknowledged write is lost"
    keys = [group.partition(":")[0] for group, rows in view(state, whole) if ":" in group and rows]
    if len(keys) > len(set(keys)):
        yield "a key is stored twice"
    if state.as_of is not None and view(state, rules, state.as_of[0])[: len(state.as_of[1])] != state.as_of[1]:
        yield "a moment has other rows than it had"
    if state.savepoint is not None and view(state, rules, state.savepoint[0]) != state.savepoint[1]:
        yield "a savepoint has other rows than it had"
    if any(writer.told == "taken back alive" for writer in state.writers):
        yield "a live writer is taken back"
    if "follow" in case.does and all(writer.step == "over" for writer in state.writers):
        missed = {number for time, number in state.who if moments(state)[time] <= state.followed[0]} - state.followed[1]
        if missed:
            yield "a follower never reads a commit"


def explore(case: Scenario, rules: Rules, most: int = 200_000) -> tuple[int, dict[str, tuple[str, ...]]]:
    """How many states there are, and the shortest way to each violation. Raises `AssertionError` beyond `most` states."""
    first = beginning(case)
    came: dict[State, tuple[State, str] | None] = {first: None}
    waiting, found = deque([first]), dict[str, tuple[str, ...]]()
    while waiting:
        state = waiting.popleft()
        for violation in violations(state, case, rules):
            found.setdefault(violation, _way(came, state))
        for name, after in steps(state, case, rules):
            if after not in came:
                came[after] = (state, name)
                waiting.append(after)
        assert len(came) <= most, f"{case.name}: more than {most} states"
    return len(came), found


def _way(came: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    way: list[str] = []
    while (before := came[state]) is not None:
        state, name = before
        way.append(name)
    return tuple(reversed(way))
