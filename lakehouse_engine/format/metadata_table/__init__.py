"""Records of Hudi's metadata table: Avro payloads, keys, and how two records of one key are merged (hudi-format 9.2)."""
