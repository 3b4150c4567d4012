"""One blocking connection to a server, and the few requests of readers and writers over it."""
