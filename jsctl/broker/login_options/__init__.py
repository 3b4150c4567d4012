"""What is configured of those who log in: what they may do, and who vouches for them."""
