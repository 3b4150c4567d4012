"""Archives of audits: written, read, and asked as if they were servers."""
