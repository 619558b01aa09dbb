"""HBASE index: entries in a table of Apache HBase say in which file group a key is, as those of Hudi's `HBaseIndex` (docs/adr/0075)."""
