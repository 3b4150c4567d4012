"""Accounts of JWTs that change while servers run: requests for that, and what servers compare."""
