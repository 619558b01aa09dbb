"""What models, services and profiles may say, and what is refused."""
