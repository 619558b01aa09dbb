"""What dbt asks about relations, and queries that it makes."""
