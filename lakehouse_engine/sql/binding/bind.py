"""Replaces relation names by pinned views; every other character of the statement stays.

The name-binding study has the six rules and their evidence: an unaliased relation keeps its name as alias, time-travel clauses become part
of the pin, `schema.table.column` loses its schema, targets are never touched. What cannot be bound is refused by name. The result is
scanned again: a name that was missed is an error, never a stale read.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.options.files import FilesRead
from lakehouse_engine.sql.binding.enclosing import OnResult
from lakehouse_engine.sql.binding.meta_columns import MetaColumns
from lakehouse_engine.sql.binding.needs import EVERYTHING, Needs, needs_of
from lakehouse_engine.sql.binding.read_files import files_of
from lakehouse_engine.sql.binding.scan import scan
from lakehouse_engine.sql.grammar.lexer import QUERY_WORDS, quote_name, significant
from lakehouse_engine.sql.grammar.references import Argument, Chain, Parts, Reference, ReferenceKind, Scan, Travel, folded, plain
from lakehouse_engine.sql.grammar.relations import CHANGES_FUNCTION, FILES_FUNCTION, READ_OPTIMIZED_FUNCTION, WITH_DELETED_FUNCTION


@dataclass(frozen=True, slots=True)
class AsOf:
    """Point in time. `kind` is `timestamp` or `version`, `value` the literal's text (a timestamp, an instant, a savepoint's name).

    `computed`: `value` is the text of an expression; `said` is the clause or call that holds it, for errors.
    """

    kind: str
    value: str
    computed: bool = False
    said: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Changes:
    """Range of changes. `mode`: `latest_state` or `cdc`; `begin` (exclusive): a moment, or `earliest`; `end`: a moment, inclusive."""

    mode: str
    begin: AsOf
    end: AsOf | None


@dataclass(frozen=True, slots=True)
class Pin:
    """One thing to read: a relation now, in the past, its changes, or its base files only; or plain files.

    `needs`: columns and rows. `meta_columns`: with Hudi's meta columns first. `deleted`: with softly deleted rows.
    """

    parts: Parts
    as_of: AsOf | None = None
    changes: Changes | None = None
    read_optimized: bool = False
    meta_columns: bool = False
    files: FilesRead | None = None
    deleted: bool = False
    needs: Needs = field(default=EVERYTHING, compare=False)


@dataclass(frozen=True, slots=True)
class Bound:
    """Text that reads only views, and the view of each pin."""

    text: str
    views: dict[Pin, str]


Knows = Callable[[Parts], bool]
ViewFor = Callable[[Pin], str]


def bind(
    text: str,
    knows: Knows,
    view_for: ViewFor,
    result: OnResult | None = None,
    *,
    meta_of: Callable[[Scan], MetaColumns | None] | None = None,
) -> Bound:
    """Replace every read of a relation that `knows` accepts by the view that `view_for` names.

    `knows` gets the name as written, without a leading `spark_catalog`. `view_for` is called once per distinct pin and returns a temporary
    view's name. `result` describes the relevant rows of the result, if known. `meta_of` says which reads have meta columns (None: none).
    Raises `UnsupportedSqlError` for what cannot be bound.
    """
    found = scan(text)
    knows = cache(knows)
    reads = _reads(found, knows)
    if found.obstacles:
        raise UnsupportedSqlError(f"{found.obstacles[0]} cannot be bound to a snapshot; write the relation's name instead")
    if not reads:
        return Bound(text, {})
    meta = None if meta_of is None else meta_of(found)
    given = set() if meta is None else meta.references
    pins = [replace(pin_of(reference), meta_columns=reference in given) for reference in reads]
    needs: dict[Pin, Needs] = {}
    for pin, own in zip(pins, needs_of(text, reads, result), strict=True):
        needs[pin] = own if pin not in needs else needs[pin].and_of(own)
    views = {pin: view_for(replace(pin, needs=own)) for pin, own in needs.items()}
    names = [views[pin] for pin in pins]
    edits = _edits(found, reads, names)
    if meta is not None:
        edits += [_Edit(star.at, star.at, star.text) for star in meta.star_edits(lambda one: one.alias or _alias(found, one))]
    bound = _splice(text, edits)
    _verify(bound, knows, names)
    return Bound(bound, views)


def requalify(expression: str, name: Parts, alias: str) -> str:
    """`expression` with columns of the unaliased relation `name` (`schema.table.column`) qualified by `alias`.

    For expressions over a target, which reach Spark without their statement. Sub-queries that read `name` themselves keep their columns.
    """
    prefix = f"select 1 from {'.'.join(map(quote_name, name))} where "
    found = scan(prefix + expression)
    target = found.references[0]
    aliases = _Aliases()
    for one in _unaliased(found):
        aliases[one.scope].append((one, alias if one is target else one.parts[-1]))
    edits = [edit for chain in found.chains if (edit := _chain_edit(found, chain, aliases, only=target)) is not None]
    return _splice(prefix + expression, edits)[len(prefix) :]


def _reads(found: Scan, knows: Knows) -> list[Reference]:
    reads = []
    for reference in found.references:
        if reference.kind is ReferenceKind.FUNCTION or (reference.kind is ReferenceKind.READ and knows(plain(reference.parts))):
            if reference.obstacle is not None:
                name = ".".join(reference.parts)
                raise UnsupportedSqlError(f"{reference.obstacle} on {name} is not supported; take it away", relation=name)
            reads.append(reference)
    return reads


def pin_of(reference: Reference) -> Pin:
    """What `reference` reads. Raises `UnsupportedSqlError` for a time-travel expression that cannot be computed, or wrong arguments."""
    if reference.kind is ReferenceKind.FUNCTION:
        return _FUNCTIONS[folded(reference.parts)[-1]](reference)
    return Pin(plain(reference.parts), as_of=_as_of(reference.travel))


def _as_of(travel: Travel | None) -> AsOf | None:
    if travel is None:
        return None
    if travel.value is not None:
        return AsOf(travel.kind, travel.value)
    said = f"{travel.kind.upper()} AS OF {travel.expression}"
    if travel.kind != "timestamp":
        raise UnsupportedSqlError(f"{said}: only a literal is supported; write the {travel.kind} itself")
    return _computed(travel.expression, said)


def _computed(expression: str, said: str) -> AsOf:
    """A moment that Spark computes. Raises `UnsupportedSqlError`, quoting `said`, for an expression that needs more than constants."""
    signs = [token.keyword for token in significant(expression)]
    if any(one == "(" and following in QUERY_WORDS for one, following in itertools.pairwise(["(", *signs])):
        raise UnsupportedSqlError(f"{said}: a sub-query is not supported there; write what it gives")
    if "?" in signs:
        raise UnsupportedSqlError(f"{said}: a parameter without a name is not supported there; give it a name (:moment)")
    return AsOf("timestamp", expression, computed=True, said=said)


def _changes_pin(reference: Reference) -> Pin:
    arguments = reference.arguments or ()
    if not 3 <= len(arguments) <= 4:
        raise UnsupportedSqlError(
            f"{CHANGES_FUNCTION} takes ('schema.table', 'latest_state', from or 'earliest' [, to]); got {len(arguments)} arguments"
        )
    mode = (arguments[1].value or "").lower()
    if mode not in ("latest_state", "cdc"):
        raise UnsupportedSqlError(f"{CHANGES_FUNCTION}: the mode {arguments[1].text} is neither 'latest_state' nor 'cdc'")
    end = _moment(CHANGES_FUNCTION, arguments[3]) if len(arguments) == 4 else None
    return Pin(_named(CHANGES_FUNCTION, arguments[0]), changes=Changes(mode, _moment(CHANGES_FUNCTION, arguments[2]), end))


def _moment_pin(reference: Reference) -> Pin:
    """Pin of a function that reads a table, now or as of a moment."""
    [function] = folded(reference.parts)
    arguments = reference.arguments or ()
    if not 1 <= len(arguments) <= 2:
        raise UnsupportedSqlError(f"{function} takes ('schema.table' [, as of]); got {len(arguments)} arguments")
    as_of, name = _moment(function, arguments[1]) if len(arguments) == 2 else None, _named(function, arguments[0])
    return Pin(name, as_of=as_of, read_optimized=function == READ_OPTIMIZED_FUNCTION, deleted=function == WITH_DELETED_FUNCTION)


def _files_pin(reference: Reference) -> Pin:
    return Pin(reference.parts, files=files_of(reference.arguments or ()))


_FUNCTIONS = {
    CHANGES_FUNCTION: _changes_pin,
    READ_OPTIMIZED_FUNCTION: _moment_pin,
    WITH_DELETED_FUNCTION: _moment_pin,
    FILES_FUNCTION: _files_pin,
}


def _moment(function: str, argument: Argument) -> AsOf:
    if argument.value is not None:
        return AsOf("timestamp", argument.value)
    return _computed(argument.text, f"{function}(... {argument.text} ...)")


def _named(function: str, argument: Argument) -> Parts:
    """Relation that an argument names."""
    name = argument.value or ""
    relation = scan(f"TABLE {name}").references
    if len(relation) != 1 or relation[0].end != len(f"TABLE {name}"):
        raise UnsupportedSqlError(f"{function}: {argument.text} is no table name; write 'schema.table'")
    return plain(relation[0].parts)


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


class _Aliases(defaultdict[int, list[tuple[Reference, str]]]):
    """Unaliased relations of each scope, and the alias of each."""

    def __init__(self) -> None:
        super().__init__(list)


def _edits(found: Scan, reads: list[Reference], names: list[str]) -> list[_Edit]:
    edits = []
    aliases = _Aliases()
    for reference, name in zip(reads, names, strict=True):
        edits.append(_Edit(reference.start, reference.end, quote_name(name)))
        if reference.travel is not None:
            edits.append(_Edit(reference.travel.start, reference.travel.end, ""))
        if reference.alias is None and reference.alias_at is not None:
            alias = _alias(found, reference)
            aliases[reference.scope].append((reference, alias))
            edits.append(_Edit(reference.alias_at, reference.alias_at, f" AS {quote_name(alias)}"))
    for chain in found.chains:
        edit = _chain_edit(found, chain, aliases)
        if edit is not None:
            edits.append(edit)
    return edits


def _unaliased(found: Scan) -> list[Reference]:
    return [one for one in found.references if one.alias is None and one.alias_at is not None]


def _alias(found: Scan, reference: Reference) -> str:
    """The table's own name; with its schema if another unaliased relation of the query has the same name and columns tell them apart.

    Another query's relation counts too: a sub-query over d.b inside a query over a.b would otherwise have two relations called b.
    """
    own = folded(reference.parts)[-1]
    namesakes = {folded(one.parts) for one in _unaliased(found) if folded(one.parts)[-1] == own}
    if len(namesakes) > 1 and any(reference.scope in found.visible(chain.scope) and _prefix(chain, reference) for chain in found.chains):
        return ".".join(plain(reference.parts))
    return plain(reference.parts)[-1]


def _chain_edit(found: Scan, chain: Chain, aliases: _Aliases, only: Reference | None = None) -> _Edit | None:
    """Name by which `chain` reaches the innermost relation that it means; None if it means none, or another than `only`."""
    for scope in found.visible(chain.scope):
        here = aliases.get(scope, [])
        for reference, alias in here:
            length = _prefix(chain, reference) or _by_last_name(chain, reference, here)
            if length:
                edit = _Edit(chain.start, chain.ends[length - 1], quote_name(alias))
                return edit if only in (None, reference) else None
        names = [one.alias.lower() for one in found.references if one.scope == scope and one.alias is not None]
        names += [alias.lower() for _, alias in here]
        if chain.parts[0].lower() in names:
            return None  # a relation of this query has the name; outer queries do not matter
    return None


def _by_last_name(chain: Chain, reference: Reference, here: list[tuple[Reference, str]]) -> int:
    """1 if `chain` starts with the last part of the name of a relation with its whole name as alias. If a query has two such, Spark reports
    ambiguity; here there is no match.
    """
    first = chain.parts[0].lower()
    renamed = [one for one, alias in here if len(plain(one.parts)) > 1 and alias == ".".join(plain(one.parts))]
    return int([one for one in renamed if plain(one.parts)[-1].lower() == first] == [reference])


def _prefix(chain: Chain, reference: Reference) -> int:
    """Number of parts of `chain` that spell `reference`'s qualified name; 0 if they do not, or no column follows."""
    own = folded(reference.parts)
    if len(own) < 2 or reference.kind is ReferenceKind.FUNCTION:
        return 0
    extra = len(chain.parts) - len(plain(chain.parts))
    length = extra + len(own)
    if folded(chain.parts)[: len(own)] != own:
        return 0
    complete = len(chain.parts) > length or chain.starred or chain.in_hint
    return length if complete else 0


def _splice(text: str, edits: list[_Edit]) -> str:
    pieces, position = [], 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        pieces += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*pieces, text[position:]])


def _verify(bound: str, knows: Knows, names: list[str]) -> None:
    """Raise an error if the result still reads a known relation, or a view is not in relation position."""
    references = [reference for reference in scan(bound).references if reference.kind is not ReferenceKind.TARGET]
    views = {(name.lower(),) for name in names}
    spliced = [reference for reference in references if folded(reference.parts) in views]
    left = [reference for reference in references if reference not in spliced]
    missed = next((one for one in left if one.kind is ReferenceKind.FUNCTION or knows(plain(one.parts))), None)
    if missed is not None or len(spliced) != len(names):
        name = ".".join(missed.parts) if missed is not None else names[0]
        raise UnsupportedSqlError(f"the reads of this statement could not all be bound (stopped at {name}); give the relation an alias")
