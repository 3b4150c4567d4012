"""What a server sends and is sent, bytes as they are: for the client library."""
