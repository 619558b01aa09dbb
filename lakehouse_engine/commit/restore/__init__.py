"""Bringing a table back to an earlier instant. `request` is what users ask for; `plan` and `execute` also finish what a crash cut off."""
