"""The nouns of a Hudi table: frozen, without I/O; each rejects an impossible value."""
