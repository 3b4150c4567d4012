"""What a changed configuration asks of a running server."""
