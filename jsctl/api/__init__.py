"""The JetStream and `$SYS` API as plain data, shared by front end and broker.

Theory of operation: every JSON document of the API is a frozen slots dataclass whose fields
stand in the order in which the real server writes them, named as in the JSON. What a type
cannot say (left out when empty, flattened, text for flags and prompts) stands in the metadata
of the field, see `fields`. `codec` turns objects into dicts and back by walking a table
compiled once per class. Nothing here knows a connection, a clock or a screen.
"""
