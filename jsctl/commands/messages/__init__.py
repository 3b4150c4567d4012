"""The commands that send, answer and show messages: publish, reply, request, subscribe."""
