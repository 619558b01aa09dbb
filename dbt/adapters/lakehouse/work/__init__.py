"""The work of one connection: session, statements, answers."""
