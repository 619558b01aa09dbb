"""Hudi's five meta columns in queries: a relation has them if the statement names one; stars do not show them.

A name belongs to the innermost query that reads something: qualified, to that relation; else to all relations of the query, unless one
shows such columns itself (`hudi_table_changes`, a sub-query that selects one). `select * from one_relation` as a sub-query, common table
expression or stored view passes them on; other stars leave them out. In queries that are not plain (`query_blocks`), no relation gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.sql.binding.needs import is_star
from lakehouse_engine.sql.binding.query_blocks import Block, Group, QueryBlocks, Source
from lakehouse_engine.sql.binding.scan import scan
from lakehouse_engine.sql.grammar.lexer import TokenKind, name_value, quote_name, significant
from lakehouse_engine.sql.grammar.references import Parts, Reference, ReferenceKind, Scan, folded, plain
from lakehouse_engine.sql.grammar.relations import READ_OPTIMIZED_FUNCTION, WITH_DELETED_FUNCTION

_PREFIX = "_hoodie_"
_OTHER_ROWS = frozenset(("DISTINCT", "GROUP", "HAVING"))
"""With these a SELECT makes new rows, which have no meta columns."""
_OF_TABLES = (READ_OPTIMIZED_FUNCTION, WITH_DELETED_FUNCTION)
"""Functions whose rows have meta columns that no star shows. `hudi_table_changes` shows them, and files have only their own columns."""
AliasOf = Callable[[Reference], str]
"""Qualifier of a reference's columns in the bound text."""


def names_meta_columns(text: str) -> bool:
    """Cheap check whether a text may name a meta column."""
    return _PREFIX in text.lower()


@dataclass(frozen=True, slots=True)
class StarEdit:
    """Text to insert at an offset, so that a star leaves meta columns out."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Relations:
    """What is asked about names. `is_table`: is it a table of the warehouse, which has the columns. `view_text`: the query of a stored view
    that does not rename columns; None for other relations.
    """

    is_table: Callable[[Parts], bool]
    view_text: Callable[[Parts], str | None]


class MetaColumns:
    """Which references of one statement have the meta columns. `handed_on`: the statement is a view's query whose reader asks for them.

    `within` are the views around the statement.
    """

    def __init__(
        self, text: str, found: Scan, relations: Relations, *, handed_on: bool = False, within: Collection[Parts] = ()
    ) -> None:
        self._blocks = QueryBlocks(text, significant(text), found.references)
        self._relations, self._within = relations, within
        self._given: set[Source] = set()
        self._handing: set[Block] = set()
        self._views: dict[Parts, MetaColumns | None] = {}
        self._shows: dict[Group, bool] = {}
        self._hands_on: dict[Group, bool] = {}
        for block, at in self._mentions():
            self._resolve(block, at)
        if handed_on and self.hands_on:
            self._hand_on(self._blocks.top)

    @property
    def references(self) -> set[Reference]:
        """References to read with meta columns."""
        return {source.reference for source in self._given if source.reference is not None}

    @property
    def hands_on(self) -> bool:
        """True if the result has the columns when its reader asks for them."""
        return self._can_hand_on(self._blocks.top)

    @property
    def shows(self) -> bool:
        """True if the result has meta columns that it selects by name."""
        return self._group_shows(self._blocks.top)

    def star_edits(self, alias_of: AliasOf) -> Iterator[StarEdit]:
        """Edits that keep the given columns out of stars."""
        for block in self._blocks.blocks:
            given = [source for source in block.sources if self._is_given(source)]
            for at in self._stars(block) if given and block not in self._handing else ():
                covered = [source for source in given if self._covers(block, at, source)]
                if covered:
                    yield self._edit(at, block, covered, alias_of)

    def _stars(self, block: Block) -> list[int]:
        return [at for at in block.own if self._blocks.keyword(at) == "*" and is_star(self._blocks.tokens, at)]

    # named columns

    def _meta_name(self, at: int) -> str | None:
        """Meta column that a token names, also in double quotes, which some sessions use for names."""
        token = self._blocks.tokens[at]
        if token.is_name:
            name = name_value(token).lower()
        else:
            name = token.text[1:-1].lower() if token.kind is TokenKind.STRING and token.text[0] == '"' else ""
        return name if name in META_COLUMNS else None

    def _mentions(self) -> Iterator[tuple[Block, int]]:
        for block in self._blocks.blocks:
            for at in block.own:
                if self._meta_name(at) is not None and self._blocks.keyword(at - 1) != "AS":
                    yield block, at

    def _resolve(self, block: Block, at: int) -> None:
        """Give the columns to the relation that a name refers to."""
        around: Block | None = block
        qualifier = self._qualifier(at)
        while around is not None:
            found = around.sources if qualifier is None else [one for one in around.sources if one.name == qualifier]
            if found:
                shown = qualifier is None and any(self._source_shows(source) for source in found)
                for source in () if shown else found:
                    self._give(around, source)
                return
            around = around.group.around

    def _qualifier(self, at: int) -> str | None:
        if self._blocks.keyword(at - 1) != "." or not self._blocks.tokens[at - 2].is_name:
            return None
        return name_value(self._blocks.tokens[at - 2]).lower()

    # what relations show and can be given

    def _source_shows(self, source: Source) -> bool:
        """True if a relation has, or may have, meta columns of its own."""
        if source.query is not None:
            return self._group_shows(source.query)
        if source.reference is None or self._is_table(source.reference):
            return False
        view = self._view(source.reference)
        return view is None or view.shows  # unknown for temporary views and other programs' tables

    def _group_shows(self, group: Group) -> bool:
        if group not in self._shows:
            self._shows[group] = group.opaque or any(self._block_shows(block) for block in group.blocks)
        return self._shows[group]

    def _block_shows(self, block: Block) -> bool:
        if any(self._meta_name(at) is not None for at in block.own if at < block.listed):
            return True
        takes_all = not block.plain or any(at < block.listed for at in self._stars(block))
        return takes_all and any(self._source_shows(source) for source in block.sources)

    def _is_table(self, reference: Reference) -> bool:
        if reference.alias_at is None:
            return False
        if reference.kind is ReferenceKind.FUNCTION:
            return folded(reference.parts)[-1] in _OF_TABLES
        return reference.kind is ReferenceKind.READ and self._relations.is_table(plain(reference.parts))

    def _view(self, reference: Reference) -> MetaColumns | None:
        """What is known about a stored view's query; None if it is no view, or reads itself."""
        if reference.kind is not ReferenceKind.READ or reference.alias_at is None or reference.travel is not None:
            return None
        own = folded(reference.parts)
        if own not in self._views:
            text = None if own in self._within else self._relations.view_text(plain(reference.parts))
            within = (*self._within, own)
            self._views[own] = None if text is None else MetaColumns(text, scan(text), self._relations, within=within)
        return self._views[own]

    def _can_have(self, source: Source) -> bool:
        if source.renamed:
            return False
        if source.query is not None:
            return self._can_hand_on(source.query)
        if source.reference is None or self._is_table(source.reference):
            return source.reference is not None
        view = self._view(source.reference)
        return view is not None and view.hands_on

    def _can_hand_on(self, group: Group) -> bool:
        """True if a query has a star over one relation that can have the columns, and its readers can leave them out of their own stars."""
        if group not in self._hands_on:
            handed = None if group.opaque or group.recursive or len(group.blocks) != 1 else self._handed(group.blocks[0])
            readers = [(block, source) for block in self._blocks.blocks for source in block.sources if source.query is group]
            fits = self._blocks.is_whole and all(block.plain and not source.renamed for block, source in readers)
            self._hands_on[group] = fits and handed is not None and self._can_have(handed)
        return self._hands_on[group]

    def _handed(self, block: Block) -> Source | None:
        """The relation whose columns a SELECT's only star passes on: the named one, or the only one."""
        stars = [at for at in self._stars(block) if at < block.listed]
        names = any(self._meta_name(at) is not None for at in block.own if at < block.listed)
        others = {self._blocks.keyword(at) for at in block.own if at >= block.listed} | {self._blocks.keyword(block.begin + 1)}
        if not block.plain or len(stars) != 1 or names or others & _OTHER_ROWS:
            return None
        found = [source for source in block.sources if self._covers(block, stars[0], source)]
        return found[0] if len(found) == 1 else None

    def _covers(self, block: Block, star: int, source: Source) -> bool:
        qualifier = self._qualifier(star)
        return source in block.sources if qualifier is None else source.name == qualifier

    # giving columns

    def _give(self, block: Block, source: Source) -> None:
        can_be_qualified = source.name or len(block.sources) == 1
        if source in self._given or not (block.plain and can_be_qualified and self._can_have(source)):
            return
        self._given.add(source)
        if source.query is not None:
            self._hand_on(source.query)

    def _hand_on(self, group: Group) -> None:
        block = group.blocks[0]
        source = self._handed(block)
        if block not in self._handing and source is not None:
            self._handing.add(block)
            self._give(block, source)

    def _is_given(self, source: Source) -> bool:
        """A common table expression that passes the columns on for one reader does so for all."""
        if source.query is not None:
            return any(block in self._handing for block in source.query.blocks)
        return source in self._given

    # stars

    def _edit(self, at: int, block: Block, covered: Sequence[Source], alias_of: AliasOf) -> StarEdit:
        tokens, word = self._blocks.tokens, self._blocks.keyword
        if (word(at + 1), word(at + 2)) != ("EXCEPT", "("):
            return StarEdit(tokens[at].end, f" EXCEPT ({_names(block, covered, alias_of, ())})")
        closed = next(number for number in range(at + 2, block.end) if word(number) == ")")
        left_out = {name for number in range(at + 3, closed) if (name := self._meta_name(number)) is not None}
        added = _names(block, covered, alias_of, left_out)
        return StarEdit(tokens[closed].start, f", {added}" if added else "")


def _names(block: Block, sources: Sequence[Source], alias_of: AliasOf, left_out: Collection[str]) -> str:
    """Meta columns of relations, qualified if there are other relations."""
    found = []
    for source in sources:
        alias = source.name if source.reference is None else alias_of(source.reference)
        prefix = "" if len(block.sources) == 1 else f"{quote_name(alias)}."
        found += [prefix + quote_name(name) for name in META_COLUMNS if name not in left_out]
    return ", ".join(found)
