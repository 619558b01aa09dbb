"""Restores a table to an earlier instant. `request` is the user's entry; `plan` and `execute` also finish an interrupted restore."""
