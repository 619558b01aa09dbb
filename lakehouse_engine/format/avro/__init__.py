"""Conversion between Avro and Arrow, of schemas and of columns of records."""
