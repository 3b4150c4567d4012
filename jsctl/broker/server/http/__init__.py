"""The monitoring port: HTTP in, pages out."""
