"""What shows that the messages of a stream are what they were (decision 37)."""
