"""The suites of the official Python client, run against both servers: see README.md beside this."""
