"""Records of Hudi's metadata table: their Avro payloads, their keys, and how two of one key are merged (hudi-format 9.2)."""
