"""Packages of dbt, run as they are from copies that the developer has; see `lane`."""
