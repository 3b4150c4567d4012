"""Tables -> acknowledged messages, each stored exactly once per query."""
