"""`jsctl server check`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option

_SEVERAL = "Multiple checks and thresholds can be passed in one command"
_BOTH = "You should set both warn and critical thresholds where applicable"
_INVERSION = (
    "For most flags setting critical to a smaller value than warn will invert the check "
    "from >= to <="
)
_MESSAGES = ("msgs-warn", "msgs-critical")
_STREAM = Option("stream", "The streams to check", required=True)


def _metadata(what: str, flag: str, value: int) -> tuple[str, ...]:
    return (
        f"These settings can be set using {what} Metadata in the following form:",
        f"  io.nats.monitor.{flag}: {value}",
        f"When set these settings will be used, but can be overridden using --{flag}.",
    )


def _time(name: str, text: str, default: str = "", *, required: bool = False) -> Option:
    metavar = (
        "" if name.startswith(("uptime", "tls", "last", "validity", "response")) else "DURATION"
    )
    return Option(name, text, Kind.DURATION, default=default, metavar=metavar, required=required)


def _count(name: str, text: str, metavar: str = "", default: str = "") -> Option:
    kind = Kind.UNSIGNED if name.endswith("lag-critical") or name in _MESSAGES else Kind.INTEGER
    return Option(name, text, kind, metavar=metavar, default=default)


def _flag(name: str, text: str) -> Option:
    return Option(name, text, Kind.FLAG)


_CONNECTION = Command(
    "connection",
    "Checks basic server connection",
    "server.check.connection:connection",
    options=(
        _time("connect-warn", "Warning threshold to allow for establishing connections", "500ms"),
        _time("connect-critical", "Critical threshold to allow for establishing connections", "1s"),
        _time("rtt-warn", "Warning threshold to allow for server RTT", "500ms"),
        _time("rtt-critical", "Critical threshold to allow for server RTT", "1s"),
        _time("req-warn", "Warning threshold to allow for full round trip test", "500ms"),
        _time("req-critical", "Critical threshold to allow for full round trip test", "1s"),
    ),
    aliases=("conn",),
    examples=("jsctl server check connection", "jsctl server check conn --rtt-critical 50ms"),
    details=(_SEVERAL, _BOTH),
)

_OF_STREAM = Command(
    "stream",
    "Checks the health of mirrored streams, streams with sources or clustered streams",
    "server.check.stream:stream",
    options=(
        _STREAM,
        _count(
            "lag-critical", "Critical threshold to allow for lag on any source or mirror", "MSGS"
        ),
        _time(
            "seen-critical",
            "Critical threshold for how long ago the source or mirror should have been seen",
        ),
        _count("min-sources", "Minimum number of sources to expect", "SOURCES"),
        _count("max-sources", "Maximum number of sources to expect", "SOURCES"),
        _count("peer-expect", "Number of cluster replicas to expect", "SERVERS"),
        _count("peer-lag-critical", "Critical threshold to allow for cluster peer lag", "OPS"),
        _time(
            "peer-seen-critical",
            "Critical threshold for how long ago a cluster peer should have been seen",
        ),
        _count(
            "msgs-warn", "Warn if there are fewer than this many messages in the stream", "MSGS"
        ),
        _count(
            "msgs-critical",
            "Critical if there are fewer than this many messages in the stream",
            "MSGS",
        ),
        _count("subjects-warn", "Warning threshold for subjects in the stream", "SUBJECTS"),
        _count("subjects-critical", "Critical threshold for subjects in the stream", "SUBJECTS"),
    ),
    examples=(
        "jsctl server check stream --stream ORDERS --peer-expect 3",
        "jsctl server check stream --stream ORDERS --msgs-warn 10 --msgs-critical 1",
    ),
    details=(_SEVERAL, _BOTH, _INVERSION, *_metadata("Stream", "lag-critical", 200)),
)

_CONSUMER = Command(
    "consumer",
    "Checks the health of a consumer",
    "server.check.consumer:consumer",
    options=(
        _STREAM,
        Option("consumer", "The consumer to check", required=True),
        _count(
            "outstanding-ack-critical", "Maximum number of outstanding acks to allow", default="-1"
        ),
        _count("waiting-critical", "Maximum number of waiting pulls to allow", default="-1"),
        _count(
            "unprocessed-critical",
            "Maximum number of unprocessed messages to allow",
            default="-1",
        ),
        _time("last-delivery-critical", "Time to allow since the last delivery", "0s"),
        _time("last-ack-critical", "Time to allow since the last ack", "0s"),
        _count("redelivery-critical", "Maximum number of redeliveries to allow", default="-1"),
        _flag(
            "pinned",
            "Requires Pinned Client priority with all groups having a pinned client",
        ),
    ),
    examples=("jsctl server check consumer --stream ORDERS --consumer BILLING",),
    details=(_SEVERAL, *_metadata("Consumer", "waiting-critical", 20)),
)

_MESSAGE = Command(
    "message",
    "Checks properties of a message stored in a stream",
    "server.check.message:message",
    options=(
        _STREAM,
        Option("subject", "The subject to fetch a message from", default=">"),
        _time("age-warn", "Warning threshold for message age as a duration"),
        _time("age-critical", "Critical threshold for message age as a duration"),
        Option("content", "Regular expression to check the content against", default="."),
        _flag("body-timestamp", "Use message body as a unix timestamp instead of message metadata"),
    ),
    examples=("jsctl server check message --stream ORDERS --age-critical 5m",),
    details=(_SEVERAL, _BOTH),
)

_META = Command(
    "meta",
    "Check JetStream cluster state",
    "server.check.meta:meta",
    options=(
        Option(
            "expect",
            "Number of servers to expect",
            Kind.INTEGER,
            metavar="SERVERS",
            required=True,
        ),
        Option(
            "lag-critical",
            "Critical threshold to allow for lag",
            Kind.UNSIGNED,
            metavar="OPS",
            required=True,
        ),
        _time(
            "seen-critical",
            "Critical threshold for how long ago a peer should have been seen",
            required=True,
        ),
    ),
    aliases=("raft",),
    examples=("jsctl server check meta --expect 3 --lag-critical 100 --seen-critical 5s",),
    details=(_SEVERAL,),
)

_REQUEST = Command(
    "request",
    "Checks a request-reply service",
    "server.check.request:request",
    options=(
        Option("subject", "The subject to send the request to", required=True),
        Option("payload", "Payload to send in the request"),
        Option("headers", "Headers to publish in the request", Kind.MAP),
        Option("match-payload", "Regular expression the response should match"),
        Option("match-headers", "Headers that the response should have", Kind.MAP),
        _time("response-critical", "Critical threshold for response time"),
        _time("response-warn", "Warning threshold for response time"),
    ),
    aliases=("req",),
    examples=("jsctl server check request --subject svc.price --match-payload '^[0-9]+$'",),
    details=(_SEVERAL, _BOTH),
)


def _percent(name: str, of: str, warn: str, critical: str) -> tuple[Option, ...]:
    return (
        _count(f"{name}-warn", f"Warning threshold for {of}, in percent of limit", default=warn),
        _count(
            f"{name}-critical", f"Critical threshold for {of}, in percent of limit", "", critical
        ),
    )


_JETSTREAM = Command(
    "jetstream",
    "Check JetStream account state",
    "server.check.jetstream:jetstream",
    options=(
        *_percent("mem", "memory storage", "75", "90"),
        *_percent("store", "disk storage", "75", "90"),
        *_percent("streams", "number of streams used", "-1", "-1"),
        *_percent("consumers", "number of consumers used", "-1", "-1"),
        Option(
            "replicas",
            "Checks if all streams have healthy replicas",
            Kind.SWITCH,
            default="true",
        ),
        _time(
            "replica-seen-critical",
            "Critical threshold for when a stream replica should have been seen, as a duration",
            "5s",
        ),
        _count(
            "replica-lag-critical",
            "Critical threshold for how many operations behind a peer can be",
            default="200",
        ),
    ),
    aliases=("js",),
    examples=("jsctl server check jetstream", "jsctl server check js --store-critical 95"),
    details=(_SEVERAL, _BOTH, _INVERSION),
)

_SERVER = Command(
    "server",
    "Checks a NATS Server health",
    "server.check.server:server",
    options=(
        Option("name", "Server name to require in the result", required=True),
        _count("cpu-warn", "Warning threshold for CPU usage, in percent"),
        _count("cpu-critical", "Critical threshold for CPU usage, in percent"),
        _count("mem-warn", "Warning threshold for Memory usage, in bytes"),
        _count("mem-critical", "Critical threshold for Memory usage, in bytes"),
        _count("conn-warn", "Warning threshold for connections, supports inversion"),
        _count("conn-critical", "Critical threshold for connections, supports inversion"),
        _count(
            "subs-warn", "Warning threshold for number of active subscriptions, supports inversion"
        ),
        _count(
            "subs-critical",
            "Critical threshold for number of active subscriptions, supports inversion",
        ),
        _time("uptime-warn", "Warning threshold for server uptime as duration"),
        _time("uptime-critical", "Critical threshold for server uptime as duration"),
        _flag("auth-required", "Checks that authentication is enabled"),
        _flag("tls-required", "Checks that TLS is required"),
        _flag("js-required", "Checks that JetStream is enabled"),
        _time("tls-cert-warn", "Warning threshold for TLS certificate expiry like 1d3h5m"),
        _time("tls-cert-crit", "Critical threshold for TLS certificate expiry like 1d3h5m"),
    ),
    examples=("jsctl server check server --name n1 --conn-warn 1000 --conn-critical 5000",),
    details=(_SEVERAL, _BOTH, _INVERSION),
)

_KV = Command(
    "kv",
    "Checks a NATS KV Bucket",
    "server.check.kv:kv",
    options=(
        Option("bucket", "Checks a specific bucket", required=True),
        _count(
            "values-critical",
            "Critical threshold for number of values in the bucket",
            default="-1",
        ),
        _count("values-warn", "Warning threshold for number of values in the bucket", default="-1"),
        Option("key", "Requires a key to have any non-delete value set"),
    ),
    examples=("jsctl server check kv --bucket CONFIG --key leader",),
    details=(_SEVERAL, _BOTH, _INVERSION),
)

_CREDENTIAL = Command(
    "credential",
    "Checks the validity of a NATS credential file",
    "server.check.credential:credential",
    options=(
        Option("credential", "The file holding the NATS credential", required=True),
        _time("validity-warn", "Warning threshold for time before expiry"),
        _time("validity-critical", "Critical threshold for time before expiry"),
        Option(
            "require-expiry",
            "Requires the credential to have expiry set",
            Kind.SWITCH,
            default="true",
        ),
    ),
    examples=("jsctl server check credential --credential app.creds --validity-warn 7d",),
    details=(_SEVERAL, _BOTH, _INVERSION),
)

_EXPORTER = Command(
    "exporter",
    "Prometheus exporter for server checks",
    "server.check.exporter:exporter",
    options=(
        Option("config", "Exporter configuration", Kind.INPUT, metavar="CONFIG", required=True),
        Option("port", "Port to listen on", Kind.INTEGER, default="8080"),
        Option("https-key", "Key for HTTPS", Kind.INPUT, metavar="HTTPS-KEY"),
        Option(
            "https-certificate", "Certificate for HTTPS", Kind.INPUT, metavar="HTTPS-CERTIFICATE"
        ),
    ),
    examples=("jsctl server check exporter --config checks.yaml --port 9100",),
    details=(
        "Each request of /metrics makes the checks of the configuration, for each of which it has "
        "a name, a kind, properties, and perhaps a context and reuse_connection.",
    ),
    hidden=True,
)

GROUP = Group(
    "check",
    "Health check for NATS servers",
    (
        _CONNECTION,
        _OF_STREAM,
        _CONSUMER,
        _MESSAGE,
        _META,
        _REQUEST,
        _JETSTREAM,
        _SERVER,
        _KV,
        _CREDENTIAL,
        _EXPORTER,
    ),
    options=(
        Option(
            "format",
            "Render the check in a specific format",
            default="nagios",
            choices=("nagios", "json", "prometheus", "text"),
        ),
        Option(
            "namespace",
            "The prometheus namespace to use in output",
            default="nats_server_check",
        ),
        Option("outfile", "Save output to a file rather than STDOUT", Kind.FILE),
    ),
)
