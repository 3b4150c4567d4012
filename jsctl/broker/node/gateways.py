"""What routes and gateways have to tell each other: the servers of a cluster know the same other
clusters, and those know all of its servers."""

from jsctl.broker.gateways.gates import Gates
from jsctl.broker.gateways.types import ClusterServer
from jsctl.broker.routes.links import Links


def follow(gates: Gates, links: Links, now_ns: int) -> None:
    """Pass on what either side has heard."""
    for told in links.gateways_told:
        gates.told_by_routes(told.gateway, told.urls, now_ns)
    links.gateways_told.clear()
    if links.servers_changed:
        links.servers_changed = False
        servers = [ClusterServer(peer.name, peer.gateway_url) for peer in links.mesh.peers()]
        gates.cluster_changed(tuple(servers))
    lines = gates.take_lines()
    for line in lines:
        links.mesh.tell(line)
    if lines:
        links.follow()
