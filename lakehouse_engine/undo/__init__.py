"""Brings a table back to an earlier state: savepoints, rollback and restore at a user's request."""
