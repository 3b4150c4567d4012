"""The NATS configuration language and the command line, down to one `Options` tree."""
