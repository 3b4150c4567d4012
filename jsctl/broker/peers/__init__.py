"""What brokers say to each other, and who of them is alive."""
