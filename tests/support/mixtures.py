"""A super-cluster of brokers and nats-servers: c1 with JetStream, c2 of the other kind without, and
at each of them a leaf node of the other kind, which has a JetStream domain of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.gateways import block, remote
from tests.support.leafs import linked, spoke_block
from tests.support.ports import free_port
from tests.support.super_clusters import meta_leader, whole

SIZES = {"c1": 3, "c2": 2}
OTHER = {"jsctl": "nats-server", "nats-server": "jsctl"}
ACCOUNTS = """
accounts {
    $SYS: { users: [ {user: admin, password: p} ] }
    APP: { jetstream: enabled, users: [ {user: app, password: p} ] }
}
no_auth_user: app
system_account: "$SYS"
"""
LOGINS = {"app": "APP", "admin": "$SYS"}


def kind_of(name: str, kind: str) -> str:
    """Of a server, where those of c1 are of `kind`."""
    return kind if name in ("edge2", *(f"c1-{n + 1}" for n in range(SIZES["c1"]))) else OTHER[kind]


def _config(name: str, cluster: str, ports: dict[str, dict[str, int]]) -> str:
    routes = ", ".join(f'"nats://{HOST}:{port}"' for port in ports[f"{cluster} routes"].values())
    far = () if cluster == "c1" else (remote("c1", *ports["c1 gateways"].values()),)
    listen = f'listen: "{HOST}:{ports[f"{cluster} routes"][name]}", routes: [ {routes} ]'
    return (
        f"server_name: {name}\ncluster {{ name: {cluster}, {listen} }}\n"
        + block(cluster, *far, port=ports[f"{cluster} gateways"][name])
        + f'leafnodes {{ listen: "{HOST}:{ports[f"{cluster} leafs"][name]}" }}\n'
        + ("jetstream { domain: c1 }\n" if cluster == "c1" else "")
        + ACCOUNTS
    )


def _edge(name: str, ports: dict[str, int]) -> str:
    remotes = []
    for user, account in LOGINS.items():
        urls = ", ".join(f'"nats://{user}:p@{HOST}:{port}"' for port in ports.values())
        remotes.append(f'{{ urls: [ {urls} ], account: "{account}" }}')
    return f"server_name: {name}\njetstream {{ domain: {name} }}\n{spoke_block(*remotes)}{ACCOUNTS}"


@contextmanager
def mixture(kind: str) -> Iterator[dict[str, Broker]]:
    """The servers by name: `c1-1` ... are of `kind`, `c2-1` ... of the other one; `edge1` hangs on
    c1, `edge2` on c2."""
    names = {one: [f"{one}-{n + 1}" for n in range(size)] for one, size in SIZES.items()}
    ports = {
        f"{one} {what}": {name: free_port() for name in several}
        for one, several in names.items()
        for what in ("routes", "gateways", "leafs")
    }
    with ExitStack() as stack:
        found: dict[str, Broker] = {}

        def start(name: str, config: str) -> Broker:
            found[name] = KINDS[kind_of(name, kind)](config=config, name=name)
            return stack.enter_context(found[name])

        for cluster, several in names.items():
            for name in several:
                start(name, _config(name, cluster, ports))
        for cluster, several in names.items():
            for name in several:
                whole(found[name], set(SIZES) - {cluster}, len(several) - 1)
        meta_leader(found["c1-1"], SIZES["c1"])
        for cluster in names:
            name = f"edge{cluster[1:]}"
            linked(start(name, _edge(name, ports[f"{cluster} leafs"])), len(LOGINS))
        yield found
