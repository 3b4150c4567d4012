"""LeafConnections of leaf nodes: servers that hang on this one, and hubs that it hangs on."""
