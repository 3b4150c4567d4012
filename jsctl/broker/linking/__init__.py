"""What all connections to other servers have in common, be they of the cluster or leaf nodes."""
