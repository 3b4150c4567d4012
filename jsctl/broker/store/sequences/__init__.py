"""What sets and lists of sequences are made of: ranges and steps."""
