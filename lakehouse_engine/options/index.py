"""Options by which a table without an index of its own choosing gets a record index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.options.base import Option, boolean, natural, natural_size, one_of

METADATA_ENABLE = Option(
    "hoodie.metadata.enable",
    one_of("AUTO", "TRUE", "FALSE"),
    "AUTO",
    "Whether the table has a metadata table (.hoodie/metadata). AUTO: as it is, or as the indexes need that are asked for. true: it is"
    " built behind the next write. false: it is dropped behind the next write.",
)
BUILT = " Built behind the next write, and kept from then on; false builds none, and leaves one that is there."
RECORD_INDEX_ENABLE: Option[bool | None] = Option(
    "hoodie.metadata.global.record.level.index.enable",
    boolean,
    None,
    "Whether the metadata table has the place of every record key (record_index), for writes with hoodie.index.type=RECORD_INDEX and for"
    f" filters by key.{BUILT}",
    ("hoodie.metadata.record.index.enable",),
)
AUTO_INDEX_FILES = Option(
    "lakehouse.index.auto.files",
    natural,
    500,
    "With hoodie.index.type=AUTO: base files up to which a write looks for keys in the files. With more, a record index is built behind the"
    " write. 0: never.",
)
AUTO_INDEX_KEYS = Option(
    "lakehouse.index.auto.max.keys",
    natural_size,
    1_000_000,
    "Keys up to which a record index is built behind a write by itself, during which no other writer commits (2 s for a million, and 3 ms a"
    " file). With more, the write names the command that builds it.",
)


@dataclass(frozen=True, slots=True)
class AutoIndexOptions:
    """When a table with `hoodie.index.type=AUTO` gets a record index: above `files` base files, with up to `keys` keys. `refused_by` is the
    option that rules it out; with `is_asked` the record index is asked for by its own option.
    """

    files: int = AUTO_INDEX_FILES.default
    keys: int = AUTO_INDEX_KEYS.default
    refused_by: str | None = None
    is_asked: bool = False

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> AutoIndexOptions:
        files, asked = AUTO_INDEX_FILES.read(raw), RECORD_INDEX_ENABLE.read(raw)
        refused = None
        if METADATA_ENABLE.read(raw) == "FALSE":
            refused = f"{METADATA_ENABLE.key}=false"
        elif asked is False:
            refused = f"{RECORD_INDEX_ENABLE.key}=false"
        elif not files:
            refused = f"{AUTO_INDEX_FILES.key}=0"
        return cls(files, AUTO_INDEX_KEYS.read(raw), refused, bool(asked))
