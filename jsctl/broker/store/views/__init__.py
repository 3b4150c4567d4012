"""The contents of a store at one moment, read while the store goes on."""
