"""The connections to the servers: who asks what, when; answers go into the model."""
