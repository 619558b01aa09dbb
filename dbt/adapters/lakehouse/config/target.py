"""What models see as `target`, besides the profile's keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.names import CATALOG


class TargetCredentials(LakehouseCredentials):
    """Profile whose `target.database` names the one catalog: packages write `{{ target.database }}.information_schema.tables`.

    Nothing else has a database: a profile may not set one, and relations made with the catalog's name have none.
    """

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        yield "database", CATALOG
        yield from super().connection_info(with_aliases=with_aliases)
