"""Where streams and consumers go: the meta leader's view turned into placements.

Shared by everything that creates, moves, scales or loses replicas. Pure: what comes out are new
assignments, which the handlers log.
"""

from collections.abc import Sequence

from jsctl.api.cluster import Placement
from jsctl.api.errors import api_error
from jsctl.api.stream import StreamConfig
from jsctl.api.words import Retention
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    GroupAssignment,
    Origin,
    StreamAssignment,
)
from jsctl.broker.jetstream.meta.entries import assign_consumer, remove_consumer
from jsctl.broker.jetstream.meta.loads import Loads
from jsctl.broker.jetstream.meta.placement import (
    NoPeers,
    Placed,
    ReplicaStanding,
    ServerFacts,
    Wanted,
    choose_peers,
    choose_subset,
    scale_down,
)
from jsctl.dataclass import replace


def loaded_servers(
    view: View, without: StreamAssignment | None = None, planned: Loads | None = None
) -> list[ServerFacts]:
    """Servers with the load that the meta state gives them, in-flight assets included, or with
    what is `planned`. What the stream `without` reserves does not count."""
    loads = view.meta.loads() if planned is None else planned.copy()
    if without is not None:
        loads.release(without)
    return _loaded(view, view.servers(), loads)


def _loaded(view: View, servers: list[ServerFacts], loads: Loads) -> list[ServerFacts]:
    removed = {server.peer for server in view.meta.servers.values() if server.removed}
    return [
        replace(
            server,
            streams=load.streams,
            ha_assets=load.replicated,
            store_reserved=load.store_reserved,
            memory_reserved=load.memory_reserved,
        )
        for server in servers
        if server.peer not in removed
        for load in [loads.of(server.peer)]
    ]


def wanted(view: View, config: StreamConfig, cluster: str) -> Wanted:
    """What a stream asks for; `cluster` is where it is put if the config names none."""
    placement = (config.placement if view.clustered else None) or Placement()
    return Wanted(
        replicas=config.num_replicas,
        cluster=placement.cluster or cluster,
        tags=placement.tags,
        bytes_max=config.max_bytes,
        memory=config.storage.value == "memory",
        unique_tag=view.unique_tag if config.num_replicas > 1 else "",
    )


def placed_or_refused(view: View, outcome: Placed | NoPeers, memory: bool) -> Placed:
    """The placement. Raises ApiError with the reasons why there is none."""
    if isinstance(outcome, Placed):
        return outcome
    if not view.clustered and outcome.no_storage:
        name = "JSMemoryResourcesExceededErr" if memory else "JSStorageResourcesExceededErr"
        raise api_error(name)
    raise api_error("JSClusterNoPeersErrF", err=outcome.text)


def new_group(view: View, config: StreamConfig, client_cluster: str) -> GroupAssignment:
    """Place a new stream: where its maker is, if that is no leaf node; where there is no room for
    it and no cluster was named, in another one. Raises ApiError."""
    told = view.servers()
    servers = _loaded(view, told, view.meta.loads())
    known = {server.cluster for server in told}
    first = client_cluster if client_cluster in known else view.cluster
    ask = wanted(view, config, first)
    outcome = choose_peers(servers, ask, view.jitter)
    if isinstance(outcome, NoPeers) and not (config.placement and config.placement.cluster):
        for other in sorted(known - {first}):
            elsewhere = replace(ask, cluster=other)
            found = choose_peers(servers, elsewhere, view.jitter)
            if isinstance(found, Placed):
                outcome, ask = found, elsewhere
                break
    placed = placed_or_refused(view, outcome, ask.memory)
    storage = config.storage.value
    return GroupAssignment(
        name=f"S-R{len(placed.peers)}{storage[0].upper()}-{view.new_name(8)}",
        peers=placed.peers,
        storage=storage,
        cluster=ask.cluster,
        preferred=placed.preferred,
        incarnations=incarnations(servers, placed.peers, storage),
        founders=placed.peers,
    )


def incarnations(
    servers: Sequence[ServerFacts], peers: Sequence[str], storage: str
) -> dict[str, int]:
    """Which life of each server is given the replica: of its disk, or of its process."""
    return {
        server.peer: server.boot if storage == "memory" else server.incarnation
        for server in servers
        if server.peer in peers
    }


def standings(view: View, group: str) -> dict[str, ReplicaStanding]:
    """How far each peer is, as far as this server knows."""
    found = {server.peer: ReplicaStanding(online=server.online) for server in view.servers()}
    seen = view.group(group)
    for peer in seen.replicas if seen is not None else ():
        online = not peer.offline and found.get(peer.peer, ReplicaStanding(online=False)).online
        found[peer.peer] = ReplicaStanding(online=online, lag=peer.lag)
    return found


def scaled(view: View, old: StreamAssignment, config: StreamConfig) -> GroupAssignment:
    """The group with another number of replicas. Raises ApiError."""
    group = old.group
    if group.moving:
        raise api_error("JSStreamMoveInProgressErr")
    if config.num_replicas < len(group.peers):
        leader = view.leader_of(group.name)
        known = standings(view, group.name)
        return _towards(view, old, scale_down(group.peers, config.num_replicas, known, leader))
    ask = wanted(view, config, group.cluster)
    outcome = choose_peers(
        loaded_servers(view, old),
        ask,
        view.jitter,
        existing=group.peers,
        excluded=group.excluded,
        leader=view.leader_of(group.name),
    )
    return _towards(view, old, placed_or_refused(view, outcome, ask.memory).peers)


def moved(
    view: View, old: StreamAssignment, config: StreamConfig, excluded: Sequence[str] = ()
) -> GroupAssignment:
    """The group where the config's placement wants it. Raises ApiError."""
    group = old.group
    if group.moving:
        raise api_error("JSStreamMoveInProgressErr")
    if not group.settled:
        raise api_error("JSStreamReconfigureInProgressErr")
    ask = wanted(view, config, group.cluster)
    servers = loaded_servers(view, old)
    by_peer = {server.peer: server for server in servers}
    fitting = [
        peer
        for peer in group.peers
        if peer not in excluded and peer in by_peer and _fits(by_peer[peer], ask)
    ]
    outcome = choose_peers(
        servers, ask, view.jitter, existing=fitting, excluded=(*excluded, *group.excluded)
    )
    peers = placed_or_refused(view, outcome, ask.memory).peers
    target = _towards(view, old, peers)
    return target if target == group else replace(target, cluster=ask.cluster, moving=True)


def _fits(server: ServerFacts, ask: Wanted) -> bool:
    alone = replace(ask, replicas=1, bytes_max=-1, unique_tag="")
    return isinstance(choose_peers([replace(server, online=True)], alone, lambda _: 0), Placed)


def _towards(view: View, old: StreamAssignment, peers: Sequence[str]) -> GroupAssignment:
    """The group on its way to `peers`; where it is already, it stays as it is."""
    group = old.group
    if tuple(peers) == group.peers and group.settled:
        return group
    origin = group.origin or Origin(
        group.peers, old.config.num_replicas, group.cluster, old.config.placement
    )
    return regrouped(view, replace(group, origin=origin), peers)


def regrouped(view: View, group: GroupAssignment, peers: Sequence[str]) -> GroupAssignment:
    """The group with other target peers; those that it leaves become former ones."""
    leader = view.leader_of(group.name)
    former = tuple(peer for peer in group.members if peer not in peers)
    fresh = [peer for peer in peers if peer not in group.members]
    lives = {peer: life for peer, life in group.incarnations.items() if peer in group.members}
    return replace(
        group,
        peers=tuple(peers),
        former=former,
        preferred=leader if leader in peers else group.preferred,
        incarnations={**lives, **incarnations(view.servers(), fresh, group.storage)},
    )


def without_peer(
    view: View, stream: StreamAssignment, consumer: ConsumerAssignment, peer: str
) -> tuple[str, ...] | None:
    """A consumer's peers with another one of its stream's in place of `peer`, online if there is
    one; None if there is none."""
    kept = tuple(one for one in consumer.group.peers if one != peer)
    spare = [one for one in stream.group.peers if one != peer and one not in kept]
    known = standings(view, stream.group.name)
    online = [one for one in spare if known.get(one, ReplicaStanding(online=False)).online]
    chosen = online or spare
    if not chosen:
        return None
    return (*kept, chosen[view.jitter(len(chosen))])


def follow(view: View, stream: StreamAssignment, gone: str = "") -> list[bytes]:
    """Entries that bring a stream's consumers to its new peers. What only the server `gone` has
    nobody will hear of any more."""
    entries = []
    for consumer in view.meta.consumers(stream.account, stream.name).values():
        if _gone_with(view, consumer.group, gone):
            entries.append(_anew(view, stream, consumer))
            continue
        if _is_stranded(view, stream, consumer):
            entries.append(_ended(consumer))
            continue
        peers, config = _consumer_peers(view, stream, consumer), consumer.config
        if config.num_replicas and stream.config.retention is not Retention.LIMITS:
            config = replace(config, num_replicas=len(peers))
        if peers != consumer.group.peers or config != consumer.config:
            group = replace(consumer.group, cluster=stream.group.cluster)
            group = regrouped(view, group, peers)
            made = replace(consumer, config=config, group=group, request=None)
            entries.append(assign_consumer(made))
    return entries


def _gone_with(view: View, group: GroupAssignment, gone: str) -> bool:
    """Whether only the server `gone` has what a group knows. The one that it was on its way to has
    it only once it leads the group."""
    if group.members == (gone,):
        return True
    on_its_way = group.former == (gone,) and len(group.peers) == 1
    return on_its_way and view.leader_of(group.name) not in group.peers


def _is_stranded(view: View, stream: StreamAssignment, consumer: ConsumerAssignment) -> bool:
    """Whether a stream that leaves a server would wait for it to come back, for a consumer that who
    made it makes again sooner."""
    group = consumer.group
    if (
        consumer.config.durable_name
        or len(group.members) > 1
        or group.peers[0] in stream.group.peers
    ):
        return False
    online = any(one.online for one in view.servers() if one.peer == group.peers[0])
    return not online and not view.leader_of(group.name)


def _ended(consumer: ConsumerAssignment) -> bytes:
    return remove_consumer(consumer.account, consumer.stream, consumer.name)


def _anew(view: View, stream: StreamAssignment, consumer: ConsumerAssignment) -> bytes:
    """A durable consumer begins anew on another server; who made another one makes it again."""
    if not consumer.config.durable_name:
        return _ended(consumer)
    peers, old = _consumer_peers(view, stream, consumer), consumer.group
    group = replace(
        old,
        name=f"{old.name.rpartition('-')[0]}-{view.new_name(8)}",
        peers=peers,
        former=(),
        cluster=stream.group.cluster,
        preferred=peers[0],
        incarnations=incarnations(view.servers(), peers, old.storage),
        founders=peers,
    )
    return assign_consumer(replace(consumer, group=group, request=None))


def _consumer_peers(
    view: View, stream: StreamAssignment, consumer: ConsumerAssignment
) -> tuple[str, ...]:
    target = stream.group.peers
    replicas = consumer.config.num_replicas
    # What a stream that lets go of what was consumed keeps each of its servers has to know.
    bound = stream.config.retention is not Retention.LIMITS
    inherits = bound or (replicas == 0 and bool(consumer.config.durable_name))
    count = len(target) if inherits else min(replicas or 1, len(target))
    kept = tuple(peer for peer in consumer.group.peers if peer in target)
    if count == len(target):
        return target
    if len(kept) >= count:
        return kept[:count]
    rest = [peer for peer in target if peer not in kept]
    known = standings(view, stream.group.name)
    more = choose_subset(rest, count - len(kept), known, view.jitter)
    return kept + (more or tuple(rest[: count - len(kept)]))
