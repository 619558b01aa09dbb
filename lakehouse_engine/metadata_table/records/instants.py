"""Moments of instants, as the record index has them: by the clock of the table's timeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lakehouse_engine.model.instant import parse_instant_time
from lakehouse_engine.timeline.writers_zone import writers_zone
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class InstantMoments:
    """Converts instant times of one table. `offset`: ahead of UTC; None for the zone of this process, with its summer time."""

    offset: timedelta | None

    @classmethod
    def of(cls, data: TableState) -> InstantMoments:
        """By `hoodie.table.timeline.timezone`; with LOCAL by the zone that the newest instants show, else that of this process."""
        if data.config.timeline_timezone == "UTC":
            return cls(timedelta(0))
        zone = writers_zone(data.storage, data.format, data.timeline)
        is_ours = zone is None or zone.moment.astimezone().utcoffset() == zone.offset
        return cls(None if is_ours or zone is None else zone.offset)

    def millis(self, instant_time: str) -> int:
        """Milliseconds since the epoch. Raises `TimelineError` if the text is no instant time."""
        digits = parse_instant_time(instant_time)
        # `parse_instant_time` gives the digits as if they were UTC.
        moment = digits.replace(tzinfo=None).astimezone() if self.offset is None else digits - self.offset
        return round(moment.timestamp() * 1000)
