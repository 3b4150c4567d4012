"""Reports on operators, accounts, users, and the JWTs that they are made of."""
