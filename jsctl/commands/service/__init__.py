"""`jsctl service`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option

_SERVICE = Argument("service", "Service to show", required=True)
_ID = Argument("id", "Show info for a specific ID")
_JSON = Option("json", "Show JSON output", Kind.FLAG, short="j")
_TRANSLATE = Option("translate", "Pipe each reply body through CMD before output")
_TEMPLATES = Option(
    "templates", "Enables template functions in body and subject", Kind.SWITCH, default="true"
)
_FORCE_STDIN = Option("force-stdin", "Force reading payload from stdin", Kind.FLAG)
_SEND_ON = Option(
    "send-on",
    "When to send data from stdin: 'eof' (default) or 'newline'",
    default="eof",
    choices=("newline", "eof"),
)
_HEADER = Option("header", "Headers in K:V form", Kind.LIST, short="H")

GROUP = Group(
    "service",
    "Services discovery and management",
    (
        Command(
            "list",
            "List known Services",
            "service.show:list_services",
            (Argument("service", "List instances of a specific Service", metavar="NAME"),),
            (_JSON,),
            aliases=("ls", "l"),
            examples=("jsctl service ls", "jsctl service ls orders"),
        ),
        Command(
            "info",
            "Show Service information",
            "service.show:info",
            (_SERVICE, _ID),
            (
                Option(
                    "endpoint",
                    "Filter shown endpoints using a regular expression",
                    short="e",
                ),
                _JSON,
            ),
            aliases=("i",),
        ),
        Command(
            "stats",
            "Report Service statistics",
            "service.show:stats",
            (Argument("service", "Service to show", required=True), _ID),
            (_JSON,),
        ),
        Command(
            "ping",
            "Sends a ping to all Services",
            "service.show:ping",
            (Argument("service", "Service to show"),),
        ),
        Command(
            "request",
            "Send a request to a service endpoint",
            "service.request:request",
            (
                Argument("service", "Service name", required=True),
                Argument("endpoint", "Endpoint name", required=True),
                Argument("payload", "Request payload"),
            ),
            (
                _HEADER,
                Option("raw", "Show only the reply body", Kind.FLAG, short="r"),
                Option("count", "Send the request N times", Kind.INTEGER, default="1"),
                _TRANSLATE,
                _TEMPLATES,
                _FORCE_STDIN,
                _SEND_ON,
            ),
            aliases=("req",),
            examples=("jsctl service request orders echo hello",),
        ),
        Command(
            "serve",
            "Runs a demo Service",
            "service.serve:serve",
            (Argument("name", "A name for the service to run on", required=True),),
            (
                Option(
                    "header",
                    "Headers to add to responses using K:V format",
                    Kind.MAP,
                    "H",
                    metavar="HEADER",
                ),
            ),
            examples=("jsctl service serve demo",),
        ),
    ),
)
