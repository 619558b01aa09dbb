"""Adding, changing and removing rows."""
