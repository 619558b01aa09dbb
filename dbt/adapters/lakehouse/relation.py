"""A relation of the warehouse: `schema.identifier`, a Hudi table or a stored view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter
from dbt.adapters.contracts.relation import ComponentName, RelationType
from dbt.adapters.spark import SparkRelation
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.lakehouse.bridge.files import files_of_source
from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.names import CATALOG, source_label
from dbt.adapters.lakehouse.reading.event_time import TIMES, bounds
from dbt.adapters.lakehouse.surroundings import Surroundings, surroundings_of

_AS_IT_IS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`")
"""A plain word, or an already quoted name."""
_STORED = (RelationType.Table, RelationType.MaterializedView)


def _readable(name: str) -> str:
    """Quote a name unless it is a plain word or already quoted."""
    return name if _AS_IT_IS.fullmatch(name) else quoted(name)


@dataclass(frozen=True, eq=False, repr=False)
class LakehouseRelation(SparkRelation):
    """Two-part names, compared case-insensitively, as in Spark.

    `files`: SQL that reads a source's files, used instead of its name. `wrong`: why a source's meta cannot be read.
    """

    files: str | None = None
    wrong: str | None = None
    around: ClassVar[Surroundings] = Surroundings()
    types_of: ClassVar[Callable[[LakehouseRelation], Mapping[str, str]]] = staticmethod(lambda _: {})
    """Spark types of a relation's columns by lower-case name; empty if no adapter made the relation."""

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **kwargs: Any) -> Any:
        """Relation of a node. For a source whose meta names files, it reads the files.

        A wrong source is recorded in `wrong`, because dbt asks while it parses; the adapter refuses all of them afterwards. dbt sometimes
        calls this class instead of the adapter's own; `quoting` then is dbt's config, which holds the adapter's.
        """
        if cls is LakehouseRelation and hasattr(quoting, "credentials"):
            return relation_class(surroundings_of(quoting)).create_from(quoting, relation_config, **kwargs)
        if str(getattr(relation_config, "resource_type", "")) == "source":
            try:
                kwargs["files"] = cls._files_of(relation_config)
            except DbtConfigError as error:
                kwargs["wrong"] = error.msg
        return super().create_from(quoting, relation_config, **kwargs)

    @classmethod
    def _files_of(cls, source: Any) -> str | None:
        found = files_of_source(source, cls.around.project_root)
        if found is not None and not cls.around.allow_files:
            raise DbtConfigError(f"{source_label(source)} reads files, which the profile does not allow (allow_files: false)")
        return found

    def __post_init__(self) -> None:
        """Keep a database only if it names an attached warehouse.

        `spark_catalog`, which packages take from `target.database`, and the warehouse's own name are no databases. Packages also ask
        `is_hudi`.
        """
        database = str(self.database or "").strip(self.quote_character).lower()
        if database in (CATALOG, self.around.catalog):
            object.__setattr__(self, "path", replace(self.path, database=None))
        elif database in self.around.attached:
            object.__setattr__(self, "path", replace(self.path, database=database))
            if self.include_policy.schema and not self.include_policy.database:
                object.__setattr__(self, "include_policy", replace(self.include_policy, database=True))
        elif self.database and self.database != self.schema:
            raise DbtRuntimeError(f"{self.schema}.{self.identifier}: {self._no_database()}")
        object.__setattr__(self, "is_hudi", None if self.type is None else self.type in _STORED)

    def _no_database(self) -> str:
        names = sorted({*self.around.attached, *filter(None, [self.around.catalog])})
        if names:
            return (
                f"'{self.database}' is given as its database, and the profile knows {', '.join(names)}: correct it, or attach a warehouse"
                " of that name ('catalogs')"
            )
        return (
            f"a warehouse has no databases, but '{self.database}' is given as one (database, catalog or target_database); leave it out:"
            " tables are named schema.table"
        )

    @property
    def is_attached(self) -> bool:
        """True if it is in another, read-only warehouse."""
        return self.database is not None and self.database in self.around.attached

    def render(self) -> str:
        """Allow a database with a schema; dbt-spark refuses that."""
        return BaseRelation.render(self)

    def _render_iterator(self) -> Iterator[tuple[ComponentName | None, str | None]]:
        """Quote every name that is no plain word, whatever the project's quoting config. Unquoted, Spark refuses it, or reads `a b` as
        table `a` with alias `b`.
        """
        if self.files is not None and self.include_policy.identifier and self.identifier:
            yield ComponentName.Identifier, self.files
            return
        for key, part in super()._render_iterator():
            yield key, None if part is None else _readable(part)

    @staticmethod
    def add_ephemeral_prefix(name: str) -> str:
        """Subquery name of an ephemeral model or unit test fixture, which dbt writes into the SQL unchanged."""
        return _readable(f"__dbt__cte__{name}")

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        mine = self.path.get_lowered_part(field)
        return mine is not None and mine.strip(self.quote_character) == value.lower().strip(self.quote_character)

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        field = event_time_filter.field_name
        kind = type(self).types_of(self).get(field.strip("`").lower())
        found = bounds(field, kind, event_time_filter.start, event_time_filter.end)
        return " and ".join(found if kind in TIMES else [*found, self._event_time_is_a_time(field)])

    def _event_time_is_a_time(self, field: str) -> str:
        """`true`, as Spark can fold it while planning. A text range would lose rows: '2024-01-02' sorts before that day's start."""
        where = f"event_time {field} of {self.schema}.{self.identifier}"
        told = f"{where} is text, and is to be compared with times: make it a timestamp or a date".replace("\\", "").replace("'", "")
        return f"if(typeof({field}) like 'string%', cast(raise_error('{told}') as boolean), true)"

    @property
    def stored(self) -> tuple[str, str]:
        """Schema and name in the warehouse. Raises `DbtRuntimeError` for a session view, which has no schema."""
        if not self.schema or not self.identifier:
            raise DbtRuntimeError(f"{self.render()} is no relation of the warehouse: it has no schema, or no name")
        return self.schema, self.identifier

    @property
    def is_temporary(self) -> bool:
        """True for a session view: its name has no schema."""
        return not self.schema or not self.include_policy.schema


@cache
def relation_class(around: Surroundings) -> type[LakehouseRelation]:
    """Relation class bound to these surroundings; dbt and packages create relations without the adapter's config."""
    return type(LakehouseRelation.__name__, (LakehouseRelation,), {"around": around})
