"""The checks: what they are called, what they look for and where their thresholds are."""

from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that a check compares with."""

    key: str
    description: str
    default: float
    unit: str = ""

    @property
    def shown(self) -> str:
        """As the list of checks has it."""
        if self.unit == "%":
            return f"{self.key} ({self.default:.0f}%)"
        return f"{self.key} ({self.default:,.3f})"


@dataclass(frozen=True, slots=True)
class Check:
    """A check; its rule is found by its code."""

    code: str
    suite: str
    name: str
    description: str
    thresholds: tuple[Threshold, ...] = ()

    def value(self, key: str) -> float:
        """A threshold's."""
        return next(one.default for one in self.thresholds if one.key == key)

    @property
    def configuration(self) -> str:
        """All thresholds as the list of checks has them."""
        return ", ".join(sorted(one.shown for one in self.thresholds))

    def document(self) -> dict[str, object]:
        """As `nats` writes it."""
        configuration = {
            one.key: {
                "key": one.key,
                "check": self.code,
                "description": one.description,
                "default": int(one.default) if one.default.is_integer() else one.default,
                "unit": one.unit,
            }
            for one in sorted(self.thresholds, key=lambda one: one.key)
        }
        return {
            "code": self.code,
            "suite": self.suite,
            "name": self.name,
            "description": self.description,
            "configuration": configuration,
        }


def _of_limit(key: str, description: str) -> Threshold:
    return Threshold(key, description, 90.0, "%")


CHECKS = (
    Check(
        "ACCOUNTS_001",
        "accounts",
        "Account Limits",
        "Account usage is below the configured limits",
        tuple(
            _of_limit(key, f"Alerting threshold as a fraction of configured {key} limit")
            for key in ("connections", "subscriptions")
        ),
    ),
    Check(
        "CLUSTER_001",
        "cluster",
        "Cluster Memory Usage Outliers",
        "Memory usage is uniform across nodes in a cluster",
        (Threshold("memory", "Threshold of memory usage above average", 1.5),),
    ),
    Check(
        "CLUSTER_002",
        "cluster",
        "Cluster Uniform Gateways",
        "All nodes in a cluster share the same gateways configuration",
    ),
    Check(
        "CLUSTER_003",
        "cluster",
        "Cluster High HA Assets",
        "Number of HA assets is below a given threshold",
        (Threshold("assets", "Number of HA assets per server", 1000.0, "uint"),),
    ),
    Check(
        "CLUSTER_004",
        "cluster",
        "Whitespace in cluster name",
        "No cluster name contains whitespace",
    ),
    Check(
        "JETSTREAM_001",
        "jetstream",
        "Stream Lagging Replicas",
        "All replicas of a stream are keeping up",
        (
            Threshold(
                "last_seq",
                "How far a replica may be behind the highest known last sequence",
                10.0,
                "%",
            ),
        ),
    ),
    Check(
        "JETSTREAM_002",
        "jetstream",
        "Stream High Cardinality",
        "Streams unique subjects do not exceed a given threshold",
        (
            Threshold(
                "subjects",
                "Alerting threshold for unique subjects in a stream",
                1_000_000.0,
                "int",
            ),
        ),
    ),
    Check(
        "JETSTREAM_003",
        "jetstream",
        "Stream Limits",
        "Stream usage is below the configured limits",
        (
            _of_limit("messages", "Alert if messages near configured limit"),
            _of_limit("bytes", "Alert if size near configured limit"),
            _of_limit("consumers", "Alert if consumer count near configured limit"),
        ),
    ),
    Check(
        "JETSTREAM_004",
        "jetstream",
        "Stream Metadata based monitoring",
        "Stream health using the 'nats server check stream' metadata",
    ),
    Check(
        "JETSTREAM_005",
        "jetstream",
        "Consumer Metadata based monitoring",
        "Consumer health using the 'nats server check consumer' metadata",
    ),
    Check(
        "LEAF_001",
        "leaf",
        "Whitespace in leafnode server names",
        "No Leafnode contains whitespace in its name",
    ),
    Check(
        "META_001",
        "meta",
        "Meta cluster offline replicas",
        "All nodes part of the meta group are online",
    ),
    Check(
        "META_002",
        "meta",
        "Meta cluster leader",
        "All nodes part of the meta group agree on the meta cluster leader",
    ),
    Check("SERVER_001", "server", "Server Health", "All known nodes are healthy"),
    Check(
        "SERVER_002",
        "server",
        "Server Version",
        "All known nodes are running the same software version",
    ),
    Check(
        "SERVER_003",
        "server",
        "Server CPU Usage",
        "CPU usage for all known nodes is below a given threshold",
        (_of_limit("cpu", "CPU Limit Threshold"),),
    ),
    Check(
        "SERVER_004",
        "server",
        "Server Slow Consumers",
        "No node is reporting slow consumers",
    ),
    Check(
        "SERVER_005",
        "server",
        "Server Resources Limits",
        "Resources are below a given threshold compared to the configured limit",
        (
            _of_limit("memory", "Threshold for memory usage"),
            _of_limit("store", "Threshold for store usage"),
        ),
    ),
    Check(
        "SERVER_006",
        "server",
        "Whitespace in JetStream domains",
        "No JetStream server is configured with whitespace in its domain",
    ),
    Check(
        "SERVER_007",
        "server",
        "Authentication required",
        "Each server requires authentication",
    ),
    Check(
        "SERVER_008",
        "server",
        "TLS Certificate Expiry",
        "TLS certificates are valid and not expiring soon",
        (
            Threshold(
                "tls_expire_warning", "Certificate expiry warning threshold in days", 30.0, "uint"
            ),
            Threshold(
                "tls_expire_critical",
                "Certificate expiry critical threshold in days",
                7.0,
                "uint",
            ),
        ),
    ),
)
