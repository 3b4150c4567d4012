"""Commands of `server` that need no server: passwords, mappings, configurations."""
