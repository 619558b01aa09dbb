"""What every table service with a plan goes through: its plan is put on the timeline, then carried out beside writers, and published.

A service says what there is to do (`service.Service`). When it may be planned (`scheduling`), who may run it (`lease`), and how a run
begins, ends and is taken back (`execution`) is the same for all.
"""
