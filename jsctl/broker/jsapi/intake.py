"""Requests of the JetStream API as this server captures them, on their way to who decides."""

from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.targets import Captured, RouteLink, Sink
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.service import ApiService
from jsctl.broker.jsapi.subscriptions import (
    ApiSubscriptions,
    from_server,
    is_twin,
    meant_in_domain,
    request_of,
)
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.sessions.last_line import LastLine, client_of
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RequestIntake:
    """Understands what was captured. A bug met by that costs the asker's connection alone."""

    engine: Engine
    api: ApiService
    identity: ServerIdentity
    line: LastLine

    def take(self, subscriptions: ApiSubscriptions, sink: Sink) -> None:
        """Requests came in."""
        for captured in sink.take():
            link = from_server(captured)
            if link is not None and not self._answers_for(link):
                continue
            if link is not None and is_twin(subscriptions, captured):
                continue
            subject = meant_in_domain(subscriptions, captured)
            if subject:
                _, reply, headers, payload, _ = captured
                self.api.publisher.on(subscriptions.account, subject, reply, headers, payload)
                continue
            found: list[ApiRequest] = []
            if self.line.run(
                client_of(captured[4]), self._understand, subscriptions, captured, found
            ):
                self.api.take(found[0])

    def _understand(
        self, subscriptions: ApiSubscriptions, captured: Captured, found: list[ApiRequest]
    ) -> None:
        """What a request says and who decides on it; nothing is changed by it yet."""
        me, identity = self.engine.options.me, self.identity
        request = request_of(subscriptions, captured, me, identity.cluster, identity.server_name)
        found.append(request)
        self.api.place(request)

    def _answers_for(self, link: RouteLink | GatewayLink) -> bool:
        """Whether a request that another server, or another cluster, sent here is ours: brokers see
        to their own clients, for those of other servers the meta leader does. What another cluster
        sends comes to one server of each cluster: that of the leader's cluster sees to it."""
        engine = self.engine
        if link.serves:
            return False
        if engine.meta.leading or not isinstance(link, GatewayLink):
            return engine.meta.leading
        leader = engine.cluster.servers.get(engine.cluster.leader_of(META_GROUP))
        return leader is not None and leader.facts.cluster == engine.options.cluster
