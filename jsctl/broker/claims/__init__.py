"""Operator mode: what JWTs of operators, accounts and users say, verified, as options of ours."""
