"""Bringing a table back: savepoints, rollback and restore as a user asks for them."""
