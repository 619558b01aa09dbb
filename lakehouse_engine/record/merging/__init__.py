"""Which of several rows of a key stays, and what is made of them."""
