"""Every feature of JetStream at every number of replicas, in file and memory, while servers die."""
