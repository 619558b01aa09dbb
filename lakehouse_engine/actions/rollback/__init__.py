"""Taking an instant back."""
