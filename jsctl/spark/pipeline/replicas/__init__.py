"""What each replica of a stream really holds, as a table."""
