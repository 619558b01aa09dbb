"""What becomes of damaged metadata: made anew, recommitted, or taken out of the way."""
