"""`jsctl schema`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

_JSON = Option("json", "Produce JSON format output", Kind.FLAG)

GROUP = Group(
    "schema",
    "Schema tools",
    (
        Command(
            "search",
            "Search schemas using a pattern",
            "schema.run:search",
            (Argument("pattern", "Regular expression to search for", default="."),),
            (_JSON,),
            aliases=("find", "list", "ls"),
            examples=("jsctl schema search 'stream.*request'",),
        ),
        Command(
            "info",
            "Display schema contents",
            "schema.run:info",
            (Argument("schema", "Schema ID to show", required=True),),
            (Option("yaml", "Produce YAML format output", Kind.FLAG),),
            aliases=("show", "view"),
            examples=("jsctl schema info io.nats.jetstream.api.v1.stream_configuration --yaml",),
        ),
        Command(
            "validate",
            "Validates a JSON file against a schema",
            "schema.run:validate",
            (
                Argument("schema", "Schema ID to validate against", required=True),
                Argument("file", "JSON data to validate (- for stdin)", required=True),
            ),
            (_JSON,),
            aliases=("check",),
            examples=(
                "jsctl schema validate io.nats.jetstream.api.v1.stream_configuration orders.json",
            ),
        ),
        Command(
            "request",
            "Request and validate data from a NATS service",
            "schema.run:request",
            (
                Argument("subject", "The subject to send a request to", required=True),
                Argument("body", "The body to send", default="{}"),
            ),
            (
                Option("schema", "The schema identifier to validate against"),
                Option("show", "Show the received data", Kind.FLAG),
            ),
            aliases=("req",),
            examples=("jsctl schema request '$JS.API.STREAM.INFO.ORDERS' --show",),
        ),
    ),
)
