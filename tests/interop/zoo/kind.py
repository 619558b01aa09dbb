"""What a kind of table is: how its users make it with Hudi, and what is expected when we read and continue it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.interop.zoo.rows import PLAIN, Rows

BOTH = ("0.15.0", "1.2.0")


@dataclass(frozen=True, slots=True)
class Write:
    """A write by Hudi's DataFrame writer of rows `numbers` in the state of `seed`; `options` count over those of the kind."""

    numbers: Sequence[int]
    seed: int
    operation: str | None = "upsert"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sql:
    """Statements of Hudi's SQL; `{t}` is the table's name, `{path}` its directory, `{newest}` its newest instant.

    `conf` are settings of the session over those of the kind.
    """

    statements: tuple[str, ...]
    conf: Mapping[str, str] = field(default_factory=dict)


def sql(*statements: str, **conf: str) -> Sql:
    return Sql(statements, conf)


@dataclass(frozen=True, slots=True)
class Property:
    """A property that somebody, or a release that we do not have, stored in `hoodie.properties`."""

    key: str
    value: str


Step = Write | Sql | Property


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is right: read and continued, unless one of these says otherwise.

    `refused` is a pattern of the error with which reads and writes, or with `read` only writes, are refused (with `inserted` all but
    inserts, with `deleted` all but deletions); `remedy` tells the reader of the documentation what to do then. `wrong` says what is not
    right yet: then the test must fail.
    """

    read: bool = True
    inserted: bool = False
    deleted: bool = False
    refused: str | None = None
    remedy: str = ""
    wrong: str | None = None


CONTINUED = Outcome()

KEYS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts"}
PARTITIONED = {**KEYS, "hoodie.datasource.write.partitionpath.field": "part"}
"""What a user of the DataFrame writer says at least."""
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
VALIDATION = {"hoodie.write.complex.keygen.validation.enable": "false"}
"""Without it Hudi 1.2.0 does not write tables of the complex key generator with one key."""
FAST = {"hoodie.metadata.enable": "false"}
"""Where the metadata table does not matter; with it each write takes twice as long."""
HISTORY: tuple[Step, ...] = (Write(range(8), 0, "insert"), Write(range(4, 10), 1))
LOGGED: tuple[Step, ...] = (*HISTORY, Write(range(2, 8), 2))
"""New keys let Hudi rewrite small base files; a batch of known ones only goes to logs."""


def history(options: Mapping[str, str]) -> tuple[Step, ...]:
    """The usual writes of a table with these options: one more where they are to leave logs."""
    return LOGGED if MOR.items() <= options.items() else HISTORY


def not_written(pattern: str, remedy: str) -> Outcome:
    """Read, but every write is refused."""
    return Outcome(refused=pattern, remedy=remedy)


def not_read(pattern: str, remedy: str) -> Outcome:
    """Neither read nor written."""
    return Outcome(read=False, refused=pattern, remedy=remedy)


def wrong(reason: str) -> Outcome:
    """Not right yet."""
    return Outcome(wrong=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of table.

    `options` are those of every DataFrame write by Hudi, before and after us; `ours` those that our writes have to be told.
    `conf` are settings of Hudi's session, `own_jvm` those of a JVM that only this kind has, where it would spoil the others' one.
    `why_not` says why only some `makers` make it, `note` what else a user has to know. `skip` names queries, by
    maker, that Hudi itself answers wrongly or not at all, with the reason; `ignore` columns, by query or for "every" one, that Hudi
    itself shows otherwise than stored. `alone`: makers of whose tables the other Hudi can read nothing. `inserts_only`: there are no
    keys to find a row by. `hidden`: by maker, columns in which Hudi itself, from logs of its own, ends with other values (see "Payload
    classes" in docs/interop.md).
    """

    name: str
    shown: str
    steps: Sequence[Step]
    options: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows = PLAIN
    conf: Mapping[str, str] = field(default_factory=dict)
    own_jvm: Mapping[str, str] | None = None
    makers: Sequence[str] = BOTH
    why_not: str = ""
    note: str = ""
    skip: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ignore: Mapping[str, Sequence[str]] = field(default_factory=dict)
    alone: Sequence[str] = ()
    inserts_only: bool = False
    hidden: Mapping[str, Sequence[str]] = field(default_factory=dict)
    deletes: bool = True
    key: Sequence[str] = ("id",)
    expected: Outcome = CONTINUED
    by_maker: Mapping[str, Outcome] = field(default_factory=dict)

    def outcome(self, maker: str) -> Outcome:
        return self.by_maker.get(maker, self.expected)
