"""What models see as `target`, beside the keys of the profile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.names import CATALOG


class TargetCredentials(LakehouseCredentials):
    """A profile whose `target.database` is the name of the one catalog: packages write `{{ target.database }}.information_schema.tables`.

    Nothing else has a database: a profile may not name one, and a relation that is made with the catalog's name has none.
    """

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        yield "database", CATALOG
        yield from super().connection_info(with_aliases=with_aliases)
