"""Meets an action's requests to an object store with faults, lets the next action recover, and checks the table."""

from __future__ import annotations

from tests.crash.checker import check_recovered, check_rows, look
from tests.crash.harness import Harness
from tests.crash.requests import ROOT, Bucket, Fault, Meet, Moment, Process, Request, buckets
from tests.crash.scenarios import COLUMNS, PROBES, batch, by_key, open_table

_AT_LAST = (Moment.END, Moment.LATER)
AFTERWARDS = ("afterwards", 1, "x", "p3")


class ObjectHarness(Harness):
    """As `Harness`, of a table in a bucket."""

    def calls(self) -> list[str]:
        """Every request that changes something, of those that the action makes when all goes well."""
        with buckets():
            bucket = Bucket(self.start.storage)
            process = Process(bucket.store)
            self.case.act(open_table(bucket.process(process)))
            return process.changes

    def check_request(self, call: int, fault: Fault) -> None:
        """One point: the fault, look, go on, look again."""
        with buckets():
            bucket = Bucket(self.start.storage)
            process = Process(bucket.store, call, fault)
            allowed = self.run(bucket.process(process))
            self.late = tuple(request.key.removeprefix(ROOT) for request in process.late if _is_data(request))
            if fault.moment is not Moment.LATER:
                process.arrive()
                self.check_left(bucket.storage, *allowed)
            else:
                self._check_arrival(bucket, process)

    def is_excepted(self, request: str, fault: Fault) -> bool:
        """A data file comes when its write was taken back: the table's first one, while nothing is archived, or one of logs beside a
        planned compaction, after which an archive without a checkpoint of all files is made.

        What is older than the timeline counts as committed where no archive tells of it: that may be lost (docs/plan.md).
        """
        is_late = fault.moment in _AT_LAST and fault.meet is not Meet.REPEATED
        if not is_late or "/.hoodie" in request or not request.startswith(("put ", "complete ")):
            return False
        return not self.before.writes or (".log." in request and "compaction" in self.before.pending.values())

    def _check_arrival(self, bucket: Bucket, process: Process) -> None:
        """The next write is done when the request arrives; the one after it finds what came of that."""
        self.cases += 1
        settled = self.settled(look(bucket.storage, COLUMNS))
        open_table(bucket.storage).upsert(batch(PROBES))
        rows = {**settled, **by_key(*PROBES)}
        process.arrive()
        arrived = look(bucket.storage, COLUMNS)
        check_rows(arrived, rows)
        check_rows(arrived, by_key(*(tuple(row.values()) for row in open_table(bucket.storage).read(["id", *COLUMNS]).to_pylist())))
        open_table(bucket.storage).upsert(batch([AFTERWARDS]))
        after = look(bucket.storage, COLUMNS)
        check_rows(after, {**rows, **by_key(AFTERWARDS)})
        check_recovered(bucket.storage, after, late=self.late)


def _is_data(request: Request) -> bool:
    """A data file is put under a name of its own, which is free once its write was taken back: nothing keeps it from coming late."""
    return request.what.startswith(("put ", "complete ")) and "/.hoodie" not in request.key
