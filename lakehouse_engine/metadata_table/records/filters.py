"""Records of `bloom_filters`, from the footers of base files (design: metadata table, section 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakehouse_engine.engine import REQUESTS_AT_ONCE, LocalRunner
from lakehouse_engine.files.footer import BaseFileFooter, read_footer
from lakehouse_engine.format.metadata_table.bloom_filters import bloom_filter_payloads
from lakehouse_engine.format.metadata_table.keys import bloom_filter_keys
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.metadata_table.records.joining import completed
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.view.table_state import TableState


def bloom_filter_records(data: TableState, files: Sequence[BaseFile]) -> Records:
    """A record for each base file with a filter, of the kind that the file says. Raises as `read_footer`."""

    def footer_of(file: BaseFile) -> BaseFileFooter:
        return read_footer(data.storage, file)

    footers = LocalRunner(REQUESTS_AT_ONCE).run(footer_of, files, name="filters")
    found = [(file, footer) for file, footer in zip(files, footers, strict=True) if footer.bloom is not None]
    paths, names = (pa.array([getattr(file, name) for file, _ in found], pa.string()) for name in ("partition_path", "name"))
    instants = pa.array([file.instant_time for file, _ in found], pa.string())
    kinds, texts = (pa.array([getattr(footer, name) for _, footer in found], pa.string()) for name in ("bloom_kind", "bloom"))
    return Records(bloom_filter_keys(paths, names), completed(bloom_filter_payloads(kinds, instants, texts)))
