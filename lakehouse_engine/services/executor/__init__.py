"""Runs every table service that has a plan: puts the plan on the timeline, carries it out beside writers, and publishes the result.

A service defines the work (`service.Service`). When it may be planned (`scheduling`), which process may run it (`lease`), and how a run
begins, ends and is undone (`execution`) is the same for all.
"""
