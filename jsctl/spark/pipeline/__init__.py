"""Pipelines, archives, audits and reports over any JetStream server, with Spark underneath.

Nothing here starts a JVM or imports pyspark until a session is really needed: specifications are
read, checked and planned with the standard library and PyYAML alone.
"""
