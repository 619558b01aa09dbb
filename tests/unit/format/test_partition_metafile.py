from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.format.partition_metafile import parse_partition_metafile, render_partition_metafile


@given(st.from_regex(r"[0-9]{14}([0-9]{3})?", fullmatch=True), st.integers(0, 50))
def test_a_metafile_parses_back(commit_time: str, depth: int) -> None:
    assert parse_partition_metafile(render_partition_metafile(commit_time, depth)) == (commit_time, depth)


def test_a_metafile_of_hudi_is_read() -> None:
    data = b"#partition metadata\n#Thu Apr 18 17:32:14 CDT 2024\ncommitTime=20240418173213674\npartitionDepth=2\n"
    assert parse_partition_metafile(data) == ("20240418173213674", 2)


@pytest.mark.parametrize(
    "data", [b"", b"commitTime=1", b"partitionDepth=1", b"commitTime=1\npartitionDepth=-1", b"commitTime=\npartitionDepth=1"]
)
def test_a_torn_metafile_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataError, match="torn"):
        parse_partition_metafile(data)


def test_a_negative_depth_is_refused() -> None:
    with pytest.raises(MetadataError):
        render_partition_metafile("20240418173213674", -1)
