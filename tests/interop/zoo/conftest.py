"""Both Hudis at once: what one made, and we continued, the other reads back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from tests.interop.client import HudiJudge, why_unavailable
from tests.interop.zoo.kind import BOTH


@pytest.fixture(scope="module")
def hudis() -> Iterator[Mapping[str, HudiJudge]]:
    """A judge of each version; both at work, so each with a little less memory than usual."""
    for version in BOTH:
        if (reason := why_unavailable(version)) is not None:
            pytest.skip(reason)
    with ExitStack() as stack:
        yield {version: stack.enter_context(HudiJudge(version, memory="1500m")) for version in BOTH}
