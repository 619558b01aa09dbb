"""What nobody has taken through the whole visit yet, by the Hudi that makes the table."""

UNTRIED: dict[str, frozenset[str]] = {
    "0.15.0": frozenset([
        "index-bloom-metadata", "index-bucket-untold", "logs-hfile", "service-archived", "service-clustering-pending",
        "service-savepoint-archived", "service-savepoint-beyond", "spark-merger",
    ]),
    "1.2.0": frozenset([
        "index-bloom-metadata", "index-bucket-untold", "keygen-timestamp-micros", "keygen-timestamp-millis",
        "keygen-timestamp-scalar", "keygen-timestamp-timestamp", "keygen-timestamp-unix", "logs-hfile", "partition-odd-encoded",
        "partition-odd-hive-encoded", "service-clustering-pending", "service-savepoint-archived",
    ]),
}
"""Visited with LAKEHOUSE_ZOO=untried or by name; shares, `make zoo` and the documentation leave them out."""
