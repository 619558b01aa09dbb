"""Table services: compaction, cleaning, archiving, on request and behind writes."""
