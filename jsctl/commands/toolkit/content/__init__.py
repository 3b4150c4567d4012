"""What messages are made of: bodies, headers and the words in braces within."""
