"""Chooses who says where the rows of a query can be: the metadata table where it can be believed, then the footers of the files.

Reads as Arrow, statements over Spark and the look-ups of merges all ask here.
"""

from __future__ import annotations

from lakehouse_engine.metadata_table.table import is_in_use
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.read.guarantees import FROM_FOOTERS, FileGuarantees, InTurn
from lakehouse_engine.read.indexed import FromMetadataTable
from lakehouse_engine.view.table_state import TableState


def guarantees_for(state: TableState, trusted: Trusted, *, opening: bool, newest: bool = False) -> FileGuarantees:
    """What is known about files of a table's state; `trusted` is its metadata table.

    `opening`: footers of files may be opened for it; readers who open the files anyway leave that to the reading. `newest`: the rows are
    those of the newest snapshot, logs included, which is all that the record index knows.
    """
    footers = (FROM_FOOTERS,) if opening else ()
    return InTurn((FromMetadataTable(trusted, newest), *footers) if is_in_use(state) else footers)
