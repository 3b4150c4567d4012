"""At the server that decides on requests of the API: when it may, in which order, how much a turn."""
