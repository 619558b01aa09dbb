"""A contender's process: `python -m benchmarks.buckets.worker TITLE`. One call a line of JSON comes in, one answer goes out."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from typing import Any

from benchmarks.buckets.contenders import CONTENDERS


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    contender = CONTENDERS[sys.argv[1]][0]()
    for line in sys.stdin:
        request = json.loads(line)
        replies.write(json.dumps(_answer(contender, request["call"], request["arguments"])) + "\n")
        replies.flush()


def _answer(contender: Any, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    begun = time.perf_counter()
    try:
        value = getattr(contender, call)(**arguments)
    except Exception as error:  # noqa: BLE001 - a contender may raise anything, and it is reported
        return {"error": f"{type(error).__name__}: {error}"[:600], "trace": traceback.format_exc()}
    return {"seconds": time.perf_counter() - begun, "value": value}


if __name__ == "__main__":
    main()
