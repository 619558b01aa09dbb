"""How a process signs what it is at work on, so that others know whether it is there still; and which of its writes came first."""

from lakehouse_engine.model.order import in_time_order
from lakehouse_engine.timeline.processes import begin_work, end_work, is_of_this_machine, may_be_at_work, parse_signature

__all__ = ["begin_work", "end_work", "in_time_order", "is_of_this_machine", "may_be_at_work", "parse_signature"]
