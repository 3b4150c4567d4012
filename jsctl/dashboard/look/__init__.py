"""Characters, colours and cells: how plain data looks. Knows rich's `Text`, but no widget."""
