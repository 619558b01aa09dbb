"""Signatures of processes at work, so that others can check whether they are alive, and the order of their writes."""

from lakehouse_engine.model.order import in_time_order
from lakehouse_engine.timeline.processes import begin_work, end_work, is_of_this_machine, may_be_at_work, parse_signature

__all__ = ["begin_work", "end_work", "in_time_order", "is_of_this_machine", "may_be_at_work", "parse_signature"]
