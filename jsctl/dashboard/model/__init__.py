"""What is known of the cluster: replies and events in, snapshots out; the clock is an argument."""
