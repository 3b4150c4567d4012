"""How each kind of event is laid out; `fill` of the module beside it gives the words meaning.

In braces stands the way to a value, perhaps with how it is shown behind a bar. A line that begins
with `?way?` is there only when that has a value, one that begins with `@` stands for several.
"""

from collections.abc import Mapping

JETSTREAM = "io.nats.jetstream.advisory.v1."
METRIC = "io.nats.jetstream.metric.v1."
SERVER = "io.nats.server.advisory.v1."
SERVER_METRIC = "io.nats.server.metric.v1."

COMPACT: Mapping[str, str] = {
    JETSTREAM + "api_audit": "[JS API] {subject}{client.user|user_at}{client.acc|spaced}",
    JETSTREAM + "api_limit_reached": "[JS API Limit] {server} {domain|in_domain}discarded "
    "{dropped|commas} messages",
    JETSTREAM + "consumer_action": "[Consumer {action|title}] {stream} > {consumer}",
    JETSTREAM + "consumer_group_pinned": "[PINNED] Consumer {stream} > {consumer} pinned client "
    "{pinned_id} for group {group}",
    JETSTREAM + "consumer_group_unpinned": "[UNPINNED] Consumer {stream} > {consumer} unpinned "
    "client for group {group}: {reason}",
    JETSTREAM + "consumer_leader_elected": "[RAFT] Consumer {stream} > {consumer} elected {leader} "
    "of {replicas|count} peers",
    JETSTREAM + "consumer_pause": "[Consumer Pause] Consumer: {stream} > {consumer} Paused: "
    "{paused|word}{pause_until|until}",
    JETSTREAM + "consumer_quorum_lost": "[RAFT] Consumer {stream} > {consumer} lost quorum of "
    "{replicas|count} peers",
    JETSTREAM + "domain_leader_elected": "[RAFT] Domain leader elected {leader} in cluster "
    "{cluster} leader of {replicas|count} peers",
    JETSTREAM + "max_deliver": "[JS Max Deliveries] {stream} ({stream_seq}) > {consumer}: "
    "{deliveries} deliveries",
    JETSTREAM + "nak": "[JS Delivery NAKed] {stream} ({stream_seq}) > {consumer}: {deliveries} "
    "deliveries",
    JETSTREAM + "restore_complete": "[Restore Complete] {stream} restored {bytes|size} bytes "
    "started {start|clock} ended {end|clock}",
    JETSTREAM + "restore_create": "[Restore Create] {stream}",
    JETSTREAM + "server_out_of_space": "[Out of Space] {server} ({server_id}){cluster|in_cluster} "
    "ran out of disk space",
    JETSTREAM + "server_removed": "[Server Removed] {server} ({server_id}){cluster|in_cluster} "
    "was removed",
    JETSTREAM + "snapshot_complete": "[Snapshot {error|complete}] {stream} started {start|clock} "
    "ended {end|clock}{error|colon}",
    JETSTREAM + "snapshot_create": "[Snapshot Create] {stream} {state.messages|commas} messages "
    "{state.bytes|size}",
    JETSTREAM + "stream_action": "[Stream {action|title}] {stream}",
    JETSTREAM + "stream_batch_abandoned": "[Batch Abandoned]{stream} {domain|in_domain} abandoned "
    "batch {batch}: {reason}",
    JETSTREAM + "stream_damage": "[Damage {action|title}] {stream} on {server}: "
    "{messages|commas} messages",
    JETSTREAM + "stream_leader_elected": "[RAFT] Stream {stream} elected {leader} of "
    "{replicas|count} peers",
    JETSTREAM
    + "stream_quorum_lost": "[RAFT] Stream {stream} lost quorum of {replicas|count} peers",
    JETSTREAM + "terminated": "[JS Delivery Terminated] {stream} ({stream_seq}) > {consumer}: "
    "{deliveries} deliveries{reason|colon}",
    METRIC + "consumer_ack": "[JS Ack] {stream} ({stream_seq}) > {consumer} ({consumer_seq}): "
    "{deliveries} deliveries in {ack_time}",
    SERVER + "account_connections": "[Account] {acc} Server: {server.name} Connections: {conns} "
    "Leaf Nodes: {leafnodes} Slow: {slow_consumers|commas} Sent: {sent.msgs|commas} / "
    "{sent.bytes|size} Received: {received.msgs|commas} / {received.bytes|size}",
    SERVER + "client_connect": "[Connection] {client.user|user} cid: {client.id} in account "
    "{client.acc}",
    SERVER + "client_disconnect": "[Disconnection] {client.user|user} cid: {client.id} in account "
    "{client.acc}: {reason}",
    SERVER_METRIC + "service_latency": "[Svc Latency] {description|then_space}requestor "
    "{requestor.rtt|duration} <-> system {system|duration} <- service rtt {responder.rtt|duration} "
    "-> service {service|duration}",
}

_STREAM = "        Stream: {stream}"
_CONSUMER = "      Consumer: {consumer}"
_DELIVERY = ("          Consumer: {stream} > {consumer}", "   Stream Sequence: {stream_seq}")
_DELIVERIES = "        Deliveries: {deliveries}"
_CLIENT = (
    "?client.user?                      User: {client.user} Account: {client.acc}",
    "                      Host: {client.host}",
    "                        ID: {client.id}",
    "?client.name?                      Name: {client.name}",
    "           Library Version: {client.ver}  Language: {client.lang|known}",
)
_CLIENT_OF_STREAM = ("        Client:", *_CLIENT)
_CLIENT_CLOSE = tuple(
    line.replace("                        ID:", "                       ID:")
    for line in _CLIENT_OF_STREAM
)
_CLIENT_CLOSER = (
    "        Client:",
    "?client.user?                     User: {client.user} Account: {client.acc}",
    "                     Host: {client.host}",
    "                      ID: {client.id}",
    "?client.name?                     Name: {client.name}",
    "          Library Version: {client.ver}  Language: {client.lang|known}",
)
"""Snapshots move what they say of clients a bit to the left."""
_CONNECTION = (
    "   Client:",
    "                 ID: {client.id}",
    "?client.user?               User: {client.user}",
    "?client.name?               Name: {client.name}",
    "            Account: {client.acc}",
    "    Library Version: {client.ver}  Language: {client.lang|known}",
    "?client.host?               Host: {client.host}",
    "?client.jwt?         Issuer Key: {client.issuer_key}",
    "?client.jwt?           Name Tag: {client.name_tag}",
    "?client.jwt?               Tags: {client.tags|joined}",
    "?client.kind?        Client Kind: {client.kind}",
    "?client.client_type?        Client Type: {client.client_type}",
)
_PEERS = ("      Replicas:", "@replicas", "")


def _party(title: str, key: str) -> tuple[str, ...]:
    """The two ends of a request."""
    names = ("Start", "User", "Name", "Language", "Version")
    keys = ("start|moment", "user", "name", "lang", "ver")
    about = [
        f"?{key}.user?{name:>12}: {{{key}.{field}}}"
        for name, field in zip(names, keys, strict=True)
    ]
    return (
        f"?{key}?",
        f"?{key}?   {title}:",
        f"?{key}?     Account: {{{key}.acc}}",
        f"?{key}?         RTT: {{{key}.rtt|duration}}",
        *about,
        f"?{key}.id?        Host: {{{key}.host}}",
        f"?{key}.id?          ID: {{{key}.id}}",
        f"?{key}.id?      Server: {{{key}.server}}",
    )


EXTENDED: Mapping[str, tuple[str, ...]] = {
    JETSTREAM + "api_audit": (
        *("JetStream API Access", "", "      Server: {server}", "     Subject: {subject}"),
        *("      Client:", *_CLIENT, "", "    Request:", "", "@request", "", "    Response:", ""),
        "@response",
    ),
    JETSTREAM + "api_limit_reached": (
        *("API Limit Reached", "", "           Dropped: {dropped}", "            Domain: {domain}"),
    ),
    JETSTREAM + "consumer_action": ("Consumer {action|title} Action", "", _STREAM, _CONSUMER),
    JETSTREAM + "consumer_group_pinned": (
        *("Grouped Consumer Pinned a Client", "", _STREAM, _CONSUMER, "         Group: {group}"),
        *("        Domain: {domain}", " Pinned Client: {pinned_id}"),
    ),
    JETSTREAM + "consumer_group_unpinned": (
        *("Grouped Consumer Un-Pinned a Client", "", _STREAM, _CONSUMER, "         Group: {group}"),
        *("        Domain: {domain}", "        Reason: {reason}"),
    ),
    JETSTREAM + "consumer_leader_elected": (
        *("Consumer Leader Election", "", _STREAM, _CONSUMER, "        Leader: {leader}", *_PEERS),
    ),
    JETSTREAM + "consumer_pause": (
        *("Consumer Pause", "", _STREAM, _CONSUMER, "        Paused: {paused|word}"),
        *("?paused?         Until: {pause_until|moment}", "?domain?        Domain: {domain}", ""),
    ),
    JETSTREAM + "consumer_quorum_lost": (
        "Consumer Quorum Lost",
        "",
        _STREAM,
        _CONSUMER,
        *_PEERS,
    ),
    JETSTREAM + "domain_leader_elected": (
        *("Domain Leader Election", "", "        Leader: {leader}", "       Cluster: {cluster}"),
        *("?domain?        Domain: {domain}", *_PEERS),
    ),
    JETSTREAM + "max_deliver": ("Delivery Attempts Exceeded", "", *_DELIVERY, _DELIVERIES),
    JETSTREAM + "nak": (
        "Delivery NAKed",
        "",
        *_DELIVERY,
        _DELIVERIES,
        "            Domain: {domain}",
    ),
    JETSTREAM + "restore_complete": (
        *("Stream Restore Completed", "", _STREAM, "         Start: {start|milliseconds}"),
        *("           End: {end|milliseconds}", "         Bytes: {bytes|size}"),
        *(*_CLIENT_OF_STREAM, ""),
    ),
    JETSTREAM + "restore_create": ("Stream Restore Created", "", _STREAM, *_CLIENT_OF_STREAM, ""),
    JETSTREAM + "server_out_of_space": (
        *("Out of Disk Space", "", "        Server: {server} - {server_id}"),
        *("       Cluster: {cluster}", "?stream?        Stream: {stream}", ""),
    ),
    JETSTREAM + "server_removed": (
        *("Server Removed", "", "        Server: {server} - {server_id}"),
        *("       Cluster: {cluster}", "?domain?        Domain: {domain}", ""),
    ),
    JETSTREAM + "snapshot_complete": (
        *("Stream Snapshot {error|completed}", "", _STREAM, "?error?         Error: {error}"),
        *("         Start: {start|milliseconds}", "           End: {end|milliseconds}"),
        *(*_CLIENT_CLOSER, ""),
    ),
    JETSTREAM + "snapshot_create": (
        *("Stream Snapshot Created", "", _STREAM, "      Messages: {state.messages|commas}"),
        "         Bytes: {state.bytes|size}",
        "     Sequences: {state.first_seq|commas} - {state.last_seq|commas}",
        *(*_CLIENT_CLOSE, ""),
    ),
    JETSTREAM + "stream_action": ("Stream {action|title} Action", "", _STREAM),
    JETSTREAM + "stream_batch_abandoned": (
        *("Publish Batch Abandoned", "", "           Account: {account}"),
        *("            Domain: {domain}", "            Stream: {stream}"),
        *("             Batch: {batch}", "            Reason: {reason}"),
    ),
    JETSTREAM + "stream_damage": (
        *("Stream Damage {action|title}", "", _STREAM, "        Server: {server}"),
        "      Messages: {messages|commas}",
        "@ranges",
    ),
    JETSTREAM + "stream_leader_elected": (
        *("Stream Leader Election", "", _STREAM, "        Leader: {leader}", *_PEERS),
    ),
    JETSTREAM + "stream_quorum_lost": ("Stream Quorum Lost", "", _STREAM, *_PEERS),
    JETSTREAM + "terminated": (
        *(
            "Delivery Terminated",
            "",
            *_DELIVERY,
            _DELIVERIES,
            "?reason?            Reason: {reason}",
        ),
        "",
    ),
    METRIC + "consumer_ack": (
        *("Acknowledgment Sample", "", "              Consumer: {stream} > {consumer}"),
        *("       Stream Sequence: {stream_seq}", "     Consumer Sequence: {consumer_seq}"),
        *("            Deliveries: {deliveries}", "                 Delay: {ack_time}"),
    ),
    SERVER + "account_connections": (
        *("Account Status", "", "      Account: {acc}", "       Server: {server.name}"),
        *("?server.cluster?      Cluster: {server.cluster}", "  Connections: {conns}"),
        *("   Leaf Nodes: {leafnodes}", "", "   Stats:"),
        "            Received: {received.msgs|commas} messages ({received.bytes|size})",
        "           Published: {sent.msgs|commas} messages ({sent.bytes|size})",
        "      Slow Consumers: {slow_consumers|commas}",
    ),
    SERVER + "client_connect": (
        *("Client Connection", "", "   Server: {server.name}"),
        *("?server.cluster?  Cluster: {server.cluster}", "", *_CONNECTION, ""),
    ),
    SERVER + "client_disconnect": (
        *("Client Disconnection", "", "?reason?    Reason: {reason}", "    Server: {server.name}"),
        *("?server.cluster?   Cluster: {server.cluster}", "", *_CONNECTION, "", "   Stats:"),
        "                  RTT: {client.rtt|duration}",
        "      Client Received: {received.msgs|plain} messages ({received.bytes|size})",
        "     Client Published: {sent.msgs|plain} messages ({sent.bytes|size})",
    ),
    SERVER_METRIC + "service_latency": (
        *("Service Latency{description|dash}", "", "   Start Time: {start|milliseconds}"),
        *("?description?        Error: {description}", "", "   Latencies:", ""),
        "      Request Duration: {total|duration}",
        "?requestor?             Requestor: {requestor.rtt|duration}",
        "           NATS System: {system|duration}",
        "               Service: {service|duration}",
        *_party("Requestor", "requestor"),
        *_party("Responder", "responder"),
    ),
}
