"""Advisories about streams, consumers, groups and servers: (subject, payload) to publish.

What a consumer finds out while delivering has its own builder in `consumer_advisories`. The
caller builds an advisory only when somebody listens to its subject.
"""

from jsctl.api.cluster import PeerInfo
from jsctl.api.codec import dumps
from jsctl.api.events import (
    APIAudit,
    APILimitReachedAdvisory,
    ConsumerActionAdvisory,
    ConsumerLeaderElectedAdvisory,
    ConsumerPauseAdvisory,
    ConsumerQuorumLostAdvisory,
    DomainLeaderElectedAdvisory,
    ServerOutOfSpaceAdvisory,
    ServerRemovedAdvisory,
    StreamActionAdvisory,
    StreamBatchAbandonedAdvisory,
    StreamDamageAdvisory,
    StreamLeaderElectedAdvisory,
    StreamQuorumLostAdvisory,
    TypedEvent,
)
from jsctl.api.server import ClientInfo as ClientBody
from jsctl.api.stream import SequenceRange
from jsctl.api.times import format_time
from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.dataclass import dataclass

PREFIX = "$JS.EVENT.ADVISORY."
_TYPE = "io.nats.jetstream.advisory.v1."
Message = tuple[bytes, bytes]
Peers = tuple[PeerInfo, ...]

_ACTIONS = {"create": "CREATED", "delete": "DELETED", "modify": "UPDATED"}


def _subject(*words: str) -> bytes:
    return (PREFIX + ".".join(words)).encode()


def client_body(client: ClientInfo) -> ClientBody:
    """Who asked, as events name it."""
    claims = client.claims
    return ClientBody(
        start=format_time(client.start_ns) if client.start_ns else "",
        host=client.host,
        id=client.conn,
        acc=client.account,
        user=client.user,
        name=client.name,
        lang=client.lang,
        ver=client.version,
        server=client.server,
        cluster=client.cluster,
        issuer_key="" if claims is None else claims.issuer,
        name_tag="" if claims is None else claims.name,
        tags=() if claims is None else claims.tags,
        kind="Client",
        client_type="nats",
    )


@dataclass(frozen=True, slots=True)
class Advisories:
    """Builders for one event: `event_id` is fresh for each, `now_ns` is when it happened."""

    event_id: str
    now_ns: int
    domain: str = ""

    def head(self, kind: str) -> TypedEvent:
        """What every advisory starts with."""
        return TypedEvent(type=_TYPE + kind, id=self.event_id, timestamp=format_time(self.now_ns))

    # Assets.

    def stream_action(self, stream: str, action: str) -> Message:
        """A stream was created, deleted or updated (`create`, `delete`, `modify`)."""
        body = StreamActionAdvisory(
            head=self.head("stream_action"), stream=stream, action=action, domain=self.domain
        )
        return _subject("STREAM", _ACTIONS[action], stream), dumps(body)

    def consumer_action(self, stream: str, consumer: str, action: str) -> Message:
        """A consumer was created or deleted (`create`, `delete`)."""
        body = ConsumerActionAdvisory(
            head=self.head("consumer_action"),
            stream=stream,
            consumer=consumer,
            action=action,
            domain=self.domain,
        )
        return _subject("CONSUMER", _ACTIONS[action], stream, consumer), dumps(body)

    def consumer_pause(
        self, stream: str, consumer: str, paused: bool, pause_until_ns: int
    ) -> Message:
        """A consumer was paused or resumed."""
        body = ConsumerPauseAdvisory(
            head=self.head("consumer_pause"),
            stream=stream,
            consumer=consumer,
            paused=paused,
            pause_until=format_time(pause_until_ns),
            domain=self.domain,
        )
        return _subject("CONSUMER", "PAUSE", stream, consumer), dumps(body)

    def batch_abandoned(self, account: str, stream: str, batch: bytes, reason: str) -> Message:
        """An atomic batch was given up; `account` names whose it was to the system account."""
        body = StreamBatchAbandonedAdvisory(
            head=self.head("stream_batch_abandoned"),
            account=account,
            stream=stream,
            batch=batch.decode("utf-8", "replace"),
            reason=reason,
            domain=self.domain,
        )
        return _subject("STREAM", "BATCH_ABANDONED", stream), dumps(body)

    def stream_damage(
        self,
        server: str,
        stream: str,
        action: str,
        messages: int,
        ranges: tuple[SequenceRange, ...],
    ) -> Message:
        """Messages of a replica are damaged (`found`), on all replicas (`lost`), or whole again
        (`repaired`)."""
        body = StreamDamageAdvisory(
            head=self.head("stream_damage"),
            stream=stream,
            server=server,
            action=action,
            messages=messages,
            ranges=ranges,
            domain=self.domain,
        )
        return _subject("STREAM", "DAMAGE", stream), dumps(body)

    # Groups.

    def stream_leader(self, account: str, stream: str, leader: str, replicas: Peers) -> Message:
        """A replicated stream has a new leader."""
        body = StreamLeaderElectedAdvisory(
            head=self.head("stream_leader_elected"),
            account=account,
            stream=stream,
            leader=leader,
            replicas=replicas,
            domain=self.domain,
        )
        return _subject("STREAM", "LEADER_ELECTED", stream), dumps(body)

    def stream_quorum_lost(self, account: str, stream: str, replicas: Peers) -> Message:
        """A replicated stream cannot find a leader."""
        body = StreamQuorumLostAdvisory(
            head=self.head("stream_quorum_lost"),
            account=account,
            stream=stream,
            replicas=replicas,
            domain=self.domain,
        )
        return _subject("STREAM", "QUORUM_LOST", stream), dumps(body)

    def consumer_leader(
        self, account: str, stream: str, consumer: str, leader: str, replicas: Peers
    ) -> Message:
        """A replicated consumer has a new leader."""
        body = ConsumerLeaderElectedAdvisory(
            head=self.head("consumer_leader_elected"),
            account=account,
            stream=stream,
            consumer=consumer,
            leader=leader,
            replicas=replicas,
            domain=self.domain,
        )
        return _subject("CONSUMER", "LEADER_ELECTED", stream, consumer), dumps(body)

    def consumer_quorum_lost(
        self, account: str, stream: str, consumer: str, replicas: Peers
    ) -> Message:
        """A replicated consumer cannot find a leader."""
        body = ConsumerQuorumLostAdvisory(
            head=self.head("consumer_quorum_lost"),
            account=account,
            stream=stream,
            consumer=consumer,
            replicas=replicas,
            domain=self.domain,
        )
        return _subject("CONSUMER", "QUORUM_LOST", stream, consumer), dumps(body)

    def domain_leader(self, leader: str, cluster: str, replicas: Peers) -> Message:
        """The meta group has a new leader."""
        body = DomainLeaderElectedAdvisory(
            head=self.head("domain_leader_elected"),
            leader=leader,
            replicas=replicas,
            cluster=cluster,
            domain=self.domain,
        )
        return _subject("DOMAIN", "LEADER_ELECTED"), dumps(body)

    # Servers.

    def out_of_storage(
        self, server: str, server_id: str, cluster: str, stream: str = ""
    ) -> Message:
        """A server's disk is full."""
        body = ServerOutOfSpaceAdvisory(
            head=self.head("server_out_of_space"),
            server=server,
            server_id=server_id,
            stream=stream,
            cluster=cluster,
            domain=self.domain,
        )
        return _subject("SERVER", "OUT_OF_STORAGE"), dumps(body)

    def server_removed(self, server: str, server_id: str, cluster: str) -> Message:
        """A server was taken out of the JetStream cluster."""
        body = ServerRemovedAdvisory(
            head=self.head("server_removed"),
            server=server,
            server_id=server_id,
            cluster=cluster,
            domain=self.domain,
        )
        return _subject("SERVER", "REMOVED"), dumps(body)

    # Requests.

    def api_audit(self, server: str, request: ApiRequest, response: bytes) -> Message:
        """A request was answered; for the account that it came from."""
        body = APIAudit(
            head=self.head("api_audit"),
            server=server,
            client=client_body(request.client),
            subject=request.subject.decode("utf-8", "replace"),
            request=request.payload.decode("utf-8", "replace"),
            response=response.decode("utf-8", "replace"),
            domain=self.domain,
        )
        return _subject("API"), dumps(body)

    def api_limit_reached(self, server: str, dropped: int) -> Message:
        """The queue of requests overflowed and was dropped."""
        body = APILimitReachedAdvisory(
            head=self.head("api_limit_reached"),
            server=server,
            dropped=dropped,
            domain=self.domain,
        )
        return _subject("API", "LIMIT_REACHED"), dumps(body)
