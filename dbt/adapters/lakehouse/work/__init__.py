"""The work of one connection: its session, its statements, its answers."""
