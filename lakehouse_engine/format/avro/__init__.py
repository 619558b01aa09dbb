"""Avro beside Arrow: schemas in both directions, and columns of records in both."""
