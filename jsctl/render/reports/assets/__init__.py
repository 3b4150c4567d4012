"""What reports on streams and consumers share."""
