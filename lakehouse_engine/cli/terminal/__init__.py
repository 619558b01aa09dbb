"""Output of the command line for people and programs."""
