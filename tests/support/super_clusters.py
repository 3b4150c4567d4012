"""Super-clusters of several servers each, as processes of either kind."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.gateways import block, gatewayz, page, remote
from tests.support.ports import free_port
from tests.support.waiting import wait_for

ACCOUNTS = """
accounts {
    $SYS: { users: [ {user: admin, password: p} ] }
    APP: { jetstream: enabled, users: [ {user: app, password: p} ] }
}
no_auth_user: app
"""


def configuration(
    name: str, cluster: str, routes: Mapping[str, int], gates: str, accounts: str
) -> str:
    """One server's; `routes` are the ports of the servers of its cluster by name, with JetStream
    there are `accounts`."""
    urls = ", ".join(f'"nats://{HOST}:{port}"' for port in routes.values())
    listen = f'listen: "{HOST}:{routes[name]}", routes: [{urls}]'
    config = f"server_name: {name}\ncluster {{ name: {cluster}, {listen} }}\n{gates}"
    return config + ("jetstream: enabled\n" + accounts if accounts else "")


@contextmanager
def super_cluster(
    kinds: Mapping[str, str],
    sizes: Mapping[str, int],
    *,
    jetstream: bool = False,
    only: str = "",
    named: bool = False,
    accounts: str = ACCOUNTS,
) -> Iterator[dict[str, Broker]]:
    """Servers by name (`a1`): so many of a kind in each cluster, perhaps with JetStream, perhaps in
    `only` one of the clusters, which hears of the others from them unless they are `named`."""
    names = {cluster: [f"{cluster}{n + 1}" for n in range(size)] for cluster, size in sizes.items()}
    routes = {one: {name: free_port() for name in several} for one, several in names.items()}
    doors = {name: free_port() for several in names.values() for name in several}
    remotes = [remote(one, *(doors[name] for name in several)) for one, several in names.items()]
    with ExitStack() as stack:
        found: dict[str, Broker] = {}
        for cluster, several in names.items():
            for name in several:
                known = remotes if named or cluster != only else ()
                gates = block(cluster, *known, port=doors[name])
                has = accounts if jetstream else ""
                config = configuration(name, cluster, routes[cluster], gates, has)
                if only not in ("", cluster):
                    config = config.replace("\njetstream: enabled\n", "\n")
                found[name] = KINDS[kinds[cluster]](config=config, name=name)
                stack.enter_context(found[name])
        for name, server in found.items():
            whole(server, {one for one in sizes if one != name[:-1]}, sizes[name[:-1]] - 1)
        yield found


def whole(server: Broker, clusters: set[str], peers: int) -> None:
    """Wait until a server is connected with all of its cluster, and with the other clusters."""

    def fact() -> bool:
        found = page(server, "/routez")
        near = {route["remote_id"] for route in found["routes"]}
        return len(near) == peers and set(gatewayz(server, "")["outbound_gateways"]) == clusters

    wait_for(fact, f"{server.name} is connected with {clusters} and {peers} servers")


def meta_leader(server: Broker, size: int) -> str:
    """Wait for the meta group of so many servers to have a leader that this server knows."""

    def fact() -> str:
        found = page(server, "/jsz")
        meta = found.get("meta_cluster") or {}
        return str(meta.get("leader", "")) if meta.get("cluster_size") == size else ""

    return str(wait_for(fact, f"{server.name} knows the leader of {size} servers", 60))


def one_jetstream(servers: Mapping[str, Broker]) -> None:
    """Wait until all of them are in one meta group, and its leader hears each of them."""

    def fact() -> bool:
        leader = servers[meta_leader(next(iter(servers.values())), len(servers))]
        found = page(leader, "/jsz")
        others = (found.get("meta_cluster") or {}).get("replicas", ())
        return len(others) == len(servers) - 1 and all(one["current"] for one in others)

    wait_for(fact, "all servers are in one meta group", 60)
    for server in servers.values():
        meta_leader(server, len(servers))


def on_the_way(servers: Mapping[str, Broker]) -> str:
    """The server of b that what a1 sends goes to."""
    peer = gatewayz(servers["a1"], "")["outbound_gateways"]["b"]["connection"]["name"]
    alive = [name for name, server in servers.items() if server.running]
    return {page(servers[name], "/varz")["server_id"]: name for name in alive}[peer]
