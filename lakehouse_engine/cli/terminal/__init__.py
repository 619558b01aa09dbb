"""How the command line speaks to people and to programs."""
