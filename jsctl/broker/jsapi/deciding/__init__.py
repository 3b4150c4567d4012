"""At the server that decides on requests of the API: whether it may, and how much a turn."""
