"""The order of a turn, over sessions, routes, JetStream and the system account."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jsapi.direct_responder import DirectGetResponder
from jsctl.broker.node.agenda import STAYING, Agenda
from jsctl.broker.node.doors import Door
from jsctl.broker.node.lame_duck import LameDuck
from jsctl.broker.node.portions import Portions
from jsctl.broker.node.protocol_log import protocol_log
from jsctl.broker.options import Options
from jsctl.broker.routing import setup
from jsctl.broker.sessions.last_line import TEXT
from jsctl.broker.sessions.request_budget import PAGE_BYTES, REQUEST_UNITS
from jsctl.broker.system.account import SystemAccount
from jsctl.broker.system.server import ServerParts
from jsctl.broker.system.subscriber_counts import SubscriberCounts
from jsctl.broker.turn import (
    WRITE_DEADLINE,
    Accepted,
    Answer,
    Command,
    ConnKind,
    LogLevel,
    LogLine,
    Query,
    TurnInputs,
    TurnOutputs,
)

if TYPE_CHECKING:
    from jsctl.broker.gateways.types import GatewaySettings
    from jsctl.broker.leafnodes.types import LeafSettings
    from jsctl.broker.node import gateways
    from jsctl.broker.node.jetstream import JetStream
else:
    gateways = lazy.module("jsctl.broker.node.gateways", optional=True)


UNFINISHED_SHARE = 4
"""Requests that come in have this part of a turn in any case, and wait behind earlier ones."""


class RunningNode:
    """A node that knows where it listens: every part is there. Which of them a turn is something
    to, its `Agenda` tells."""

    def __init__(
        self,
        server: ServerParts,
        jetstream: "JetStream | None",
        system: SystemAccount,
        departure: LameDuck,
    ) -> None:
        self.server = server
        self.jetstream = jetstream
        self._system = system
        self._departure = departure
        self._router = server.router
        self._sessions = server.sessions
        self._links = server.links
        self._leafs = server.leafs
        self._gates = server.gates
        self._line = server.line
        self._protocol_log = protocol_log(server.options)
        limits = server.options.jetstream.limits
        self._budget = server.budget
        self._portions = Portions(limits.request_queue_max)
        self._queries: deque[Query] = deque()
        """Pages that are to be made."""
        self._busy = False
        """The last turn had no room for all requests."""
        self._quiet = self._rests = self._closes = False
        """The last turn left JetStream alone; one that brings nothing after it may do so, as far
        as it found out; it closed connections."""
        self._logs: list[LogLine] = []
        self._agenda = Agenda(server, jetstream, system, departure, self._portions)
        self._doors = self._agenda.doors

    def start(self, now_ns: int) -> TurnOutputs:
        """Recover, and look for the others. Raises DiskError, Damaged."""
        if self.jetstream is not None:
            self.jetstream.start(now_ns)
        self._system.listen()
        if self._links is not None:
            self._links.mesh.start(now_ns)
        if self._leafs is not None:
            self._leafs.start(self.server.options, now_ns)
        if self._gates is not None:
            self._gates.start(now_ns)
        return self.turn(TurnInputs(), now_ns)

    def reload(
        self,
        options: Options,
        told: tuple[tuple[str, ...], str, str],
        *,
        by_claims: bool = False,
    ) -> None:
        """Take changed options; others are `told` where clients, leaf nodes and gateways may come.
        Accounts come first, then what listens in them, and clients last: who may stay finds all
        that there is to find. `by_claims`: nothing but accounts of JWTs has changed."""
        if self.jetstream is not None:
            self.jetstream.engine.settle()
        before, self.server.options = self.server.options, options
        router, sessions = self._router, self._sessions
        if not by_claims:
            self.server.tallies.loaded_ns = router.now_ns
        changes = router.accounts.configure(options)
        router.follow(changes)
        if self.jetstream is not None:
            self.jetstream.reload(options, changes)
        router.limits = setup.limits(options)
        sessions.change_limits(router.limits)
        sessions.review({one.account for one in changes} if by_claims else None)
        sessions.shed()
        if (before.log, before.client) != (options.log, options.client):
            self._protocol_log = protocol_log(options)
            if self._protocol_log is not None:
                self._protocol_log.join(sessions)
        if self._links is not None:
            server_id, addresses = self.server.identity.server_id, self.server.addresses
            self._links.change_options(options, server_id, addresses, *told, router.now_ns)
        self._system.reloaded()
        self._agenda.stirred = True

    def reload_leafs(self, settings: "LeafSettings") -> None:
        """The same of leaf nodes and hubs."""
        assert self._leafs is not None
        self._leafs.change_options(self.server.options, settings, self._router.now_ns)

    def reload_gates(self, settings: "GatewaySettings") -> None:
        """The same of other clusters."""
        assert self._gates is not None
        self._gates.change_options(settings)

    # The turn

    def turn(self, inputs: TurnInputs, now_ns: int) -> TurnOutputs:
        """See `Node.turn`."""
        self._router.now_ns = now_ns
        if inputs.process is not None:
            self.server.tallies.process = inputs.process
        agenda, jetstream, rare = self._agenda, self.jetstream, inputs.rare
        agenda.stirred = agenda.stirred or rare
        quiet = now_ns < agenda.quiet_until_ns and not (agenda.stirred or inputs.synced)
        ticks = 0
        if jetstream is not None and not quiet:
            if jetstream.has_put_off and (rare or self._brings_more_than_syncs(inputs)):
                jetstream.engine.settle()
            ticks = jetstream.take_early(now_ns, inputs)
        if rare:
            self._take_news(inputs, now_ns)
        self._take_input(inputs, now_ns)
        if self._links is not None:
            self._follow_links()
        outputs = TurnOutputs()
        if quiet:
            self._sessions.tick(now_ns)
            quiet = not self._is_stirred
            if quiet and not self._router.has_dirty:
                self._emit(outputs, now_ns, quiet=True)
                return outputs
            if jetstream is not None:
                ticks = jetstream.take_early(now_ns, inputs)
        reads = not inputs.synced and self._brings_reads_at_most
        self._go_on(inputs, now_ns)
        if quiet and reads and self._has_read:
            self._emit(outputs, now_ns, quiet=True)
            return outputs
        self._work(inputs, now_ns, ticks, outputs)
        self._emit(outputs, now_ns)
        agenda.quiet_until_ns = 0
        self._rests = reads and not self._router.has_dirty
        return outputs

    def settle(self, now_ns: int) -> int | None:
        """See `Node.settle`."""
        agenda, busy, jetstream = self._agenda, self._busy, self.jetstream
        if jetstream is not None and not self._quiet and jetstream.engine.settle():
            return now_ns
        if self._quiet and not self._doors:
            deadline_ns = agenda.quiet_deadline_ns()
        else:
            deadline_ns = agenda.deadline_ns(now_ns, busy=busy)
        # What a client is closed for is told when the next turn looks.
        agenda.stirred = self._closes
        if self._rests:
            agenda.rest(busy=busy)
        return deadline_ns

    @property
    def unfinished(self) -> bool:
        """See `Node.unfinished`."""
        waits = self._busy or bool(self._portions.waiting) or self._sessions.unfinished
        return waits or (self.jetstream is not None and self.jetstream.unfinished)

    def _brings_more_than_syncs(self, inputs: TurnInputs) -> bool:
        """Else what waited for a sync in the loop's own thread leaves before what is put off."""
        return bool(inputs.chunks or not inputs.synced) or self.unfinished

    @property
    def _is_stirred(self) -> bool:
        """Whether input that no sink captured is something to the parts."""
        links, gates, jetstream = self._links, self._gates, self.jetstream
        if self._agenda.stirred or (links is not None and links.has_peers):
            return True
        if gates is not None and gates.routing.news:
            return True
        return jetstream is not None and jetstream.is_stirred

    @property
    def _brings_reads_at_most(self) -> bool:
        """Whether all that sinks have captured are direct gets."""
        return all(isinstance(one.owner, DirectGetResponder) for one in self._router.dirty)

    @property
    def _has_read(self) -> bool:
        """Whether nothing else came of what was captured than answers."""
        if self._is_stirred or self._router.has_dirty:
            return False
        return self.jetstream is None or self.jetstream.has_read

    def _work(self, inputs: TurnInputs, now_ns: int, ticks: int, outputs: TurnOutputs) -> None:
        """All that follows from what came in; `ticks`: what is left of the time that went by."""
        jetstream = self.jetstream
        if jetstream is not None and ticks:
            jetstream.engine.tick_late()
        self._sessions.tick(now_ns)
        if self._agenda.is_time(now_ns):
            self._tick(now_ns)
        if jetstream is not None:
            jetstream.work(self._collect)
        if inputs.queries or self._queries:
            if jetstream is not None:
                jetstream.engine.settle()
            self._answer_queries(inputs.queries, outputs)

    def _go_on(self, inputs: TurnInputs, now_ns: int) -> None:
        """With what earlier turns left, then with what came in."""
        self._meet_peers()
        for command in inputs.commands:
            self._command(command, now_ns)
        budget = self._budget
        units = budget.left = budget.units_max
        jetstream = self.jetstream
        if jetstream is not None and jetstream.waiting:
            jetstream.go_on()
        if self._busy:
            if jetstream is not None:
                jetstream.api.begin_turn()
            self._system.go_on(1)
            units = max(budget.left, units // UNFINISHED_SHARE)
            self._agenda.stirred = True
        for sink in self._portions.begin(units):
            self._take_sink(sink)
        self._collect()

    def _take_disk_failures(self, inputs: TurnInputs) -> None:
        for _, reason in inputs.disk_failed:
            self._logs.append(
                LogLine(
                    LogLevel.FATAL,
                    f"The store cannot be written: {reason}; nothing unsynced was acknowledged,"
                    " the server stops",
                )
            )
            self.server.tallies.failed = "disk failure"

    def _take_news(self, inputs: TurnInputs, now_ns: int) -> None:
        """Failures and reloads, connections that are new, and what was found out of others."""
        self._take_disk_failures(inputs)
        if inputs.reloaded:
            self._system.reload_ended(inputs.reloaded[0])
        if inputs.claimed:
            self._system.changed(inputs.claimed)
        sessions, run = self._sessions, self._line.run
        for accepted in inputs.accepted:
            run(accepted.conn, self._accept, accepted, now_ns)
        sessions.secured(inputs.secured)
        for conn, ok in inputs.verified:
            run(conn, self._verified, conn, ok)

    def _take_input(self, inputs: TurnInputs, now_ns: int) -> None:
        if inputs.faults:
            self._line.count += len(inputs.faults)
        if inputs.pending:
            self._take_pending(inputs)
        sessions = self._sessions
        for conn in sessions.begin(len(inputs.chunks)):
            self._line.run(conn, sessions.go_on, conn)
        if inputs.chunks:
            self._feed(inputs.chunks, now_ns)
        if inputs.closed or inputs.dial_failed:
            self._take_closed(inputs, now_ns)

    def _feed(self, chunks: Sequence[tuple[int, bytes]], now_ns: int) -> None:
        """Hand input to whom it is from."""
        taker = self._taker if self._doors else None
        if self._protocol_log is None:
            self._line.feed(chunks, taker, now_ns)
            return
        for conn, chunk in chunks:
            self._protocol_log.received(conn, chunk)
            self._line.feed([(conn, chunk)], taker, now_ns)

    def _taker(self, conn: int) -> Callable[[int, bytes, int], None]:
        """Who takes the input of a connection."""
        owner = self._owner(conn)
        return self._sessions.feed if owner is None else owner.feed

    def _owner(self, conn: int) -> Door | None:
        """Who has a connection to another server."""
        for door in self._doors:
            if door.owns(conn):
                return door
        return None

    def _verified(self, conn: int, ok: bool) -> None:
        self._sessions.verified(conn, ok)
        if self._leafs is not None:
            self._leafs.verified(conn, ok)

    def _accept(self, accepted: Accepted, now_ns: int) -> None:
        if accepted.kind is ConnKind.CLIENT:
            session = self._sessions.accept(accepted, now_ns)
            self._system.accepted(session)
            if self._protocol_log is not None:
                self._protocol_log.accepted(session)
            return
        for door in self._doors:
            if door.kind is accepted.kind:
                door.opened(accepted, now_ns)

    def _take_pending(self, inputs: TurnInputs) -> None:
        for conn, unsent in inputs.pending:
            owner = self._owner(conn)
            if owner is not None:
                owner.pending(conn, unsent)
            else:
                self._sessions.client_pending(conn, unsent)

    def _take_closed(self, inputs: TurnInputs, now_ns: int) -> None:
        for dial, reason in inputs.dial_failed:
            for door in self._doors:
                if door.kind is dial.kind:
                    door.dial_failed(dial, reason, now_ns)
        for conn, reason in inputs.closed:
            owner = self._owner(conn)
            if owner is not None:
                if reason == WRITE_DEADLINE:
                    self.server.tallies.late[owner.kind] += 1
                owner.closed(conn, reason, now_ns)
            else:
                self._sessions.gone(conn, reason)
                if self._protocol_log is not None:
                    self._protocol_log.gone(conn, reason)

    def _follow_links(self) -> None:
        links = self._links
        if links is None:
            return
        links.follow()
        if links.urls is not None:
            self.server.identity.connect_urls, links.urls = links.urls, None
            self._sessions.send_info()
        if links.leafnode_urls is not None:
            urls, links.leafnode_urls = links.leafnode_urls, None
            if self._leafs is not None:
                self._leafs.tell_urls(urls)
        if self._gates is not None:
            gateways.follow(self._gates, links, self._router.now_ns)

    def _meet_peers(self) -> None:
        """Pass on which brokers came and went, in this cluster and in others."""
        jetstream = self.jetstream
        if self._links is not None:
            for name, change in self._links.take_peers():
                if jetstream is not None:
                    jetstream.peer_changed(name, change)
        if self._gates is not None:
            for sub, came in self._gates.routing.take_news():
                if jetstream is not None:
                    jetstream.far_changed(sub, came)

    def _command(self, command: Command, now_ns: int) -> None:
        if command is Command.RELOAD:
            return
        before = self._departure.lame
        self._departure.command(command, now_ns)
        if self._departure.lame and not before:
            self._system.lame_duck()
            if self._links is not None:
                self._links.mesh.lame_duck()

    def _tick(self, now_ns: int) -> None:
        self._agenda.stirred = True
        if self.jetstream is not None:
            self.jetstream.engine.settle()
            self.jetstream.engine.look()
        for door in self._doors:
            door.tick(now_ns)
            for conn in door.unread():
                self._line.run(conn, door.feed, conn, b"", now_ns)
        if self.jetstream is not None and self._gates is not None:
            connections = self._gates.connections
            self.jetstream.know_clusters(connections.bare(), connections.serving(), now_ns)
        if self._links is not None:
            self._follow_links()
        self._meet_peers()
        self._system.tick(now_ns)
        if self.jetstream is not None:
            self.jetstream.tick(now_ns)
            if dropped := self._portions.take_dropped():
                self.jetstream.requests_dropped(dropped)

    # Captures

    def _collect(self) -> None:
        """Pass on what replicas found out, and hand what sinks captured to whom it concerns."""
        jetstream = self.jetstream
        if jetstream is not None and jetstream.engine.context.facts:
            self._agenda.stirred = True
            if jetstream.pass_on():
                self._system.jetstream_changed(self._router.now_ns)
        while sinks := self._router.take_dirty():
            if jetstream is not None:
                sinks = jetstream.engine.collect(sinks)
            for sink in sinks:
                self._take_sink(sink)

    def _take_sink(self, sink: Sink) -> None:
        jetstream = self.jetstream
        of_peers = jetstream is not None and jetstream.is_of_peers(sink)
        if not of_peers and not isinstance(sink.owner, SubscriberCounts):
            self._portions.cut(sink)
        if jetstream is None or not jetstream.take(sink, self._router.now_ns):
            self._system.take(sink)
            self._agenda.stirred = True
        elif jetstream.stirred or self._portions.waiting:
            jetstream.stirred, self._agenda.stirred = False, True

    def _answer_queries(self, queries: Sequence[Query], outputs: TurnOutputs) -> None:
        """Make as many pages as the turn has room for, one at least."""
        self._queries.extend(queries)
        while self._queries and (self._budget.left > 0 or not outputs.answers):
            answer = self._answer(self._queries.popleft())
            self._budget.left -= REQUEST_UNITS + len(answer.body) // PAGE_BYTES
            outputs.answers.append(answer)

    def _answer(self, query: Query) -> Answer:
        answers: list[Answer] = []
        if self._line.run(0, lambda: answers.append(self._system.query(query))):
            return answers[0]
        return Answer(query.token, 500, "text/plain; charset=utf-8", TEXT)

    # The end of the turn

    def _emit(self, outputs: TurnOutputs, now_ns: int, *, quiet: bool = False) -> None:
        if self._departure.stage is not STAYING:
            self._departure.step(now_ns, outputs)
            if outputs.exit:
                self._system.shutdown()
        if self.jetstream is not None and not quiet:
            self.jetstream.emit(outputs, self._sessions)
        if self._router.tracing.open:
            self._system.tell(self._router.tracing.take())
        self._sessions.emit(outputs)
        if self._protocol_log is not None:
            self._protocol_log.ended(outputs)
        for door in self._doors:
            door.emit(outputs)
        if self._logs or self._departure.logs:
            outputs.logs += self._logs + self._departure.logs
            self._logs, self._departure.logs = [], []
        outputs.faults = self._line.take()
        if self.server.tallies.failed or outputs.exit:
            self._end(outputs)
        self._system.emit(outputs)
        self._busy = self._budget.left <= 0 and self._has_more
        self._quiet, self._rests, self._closes = quiet, False, bool(outputs.closes)

    def _end(self, outputs: TurnOutputs) -> None:
        if self.server.tallies.failed:
            outputs.exit, outputs.exit_status = self.server.tallies.failed, 1
        if self.jetstream is not None:
            self.jetstream.close()

    @property
    def _has_more(self) -> bool:
        """Whether the next turn, which follows at once, has something to go on with."""
        jetstream = self.jetstream
        waits = bool(self._system.waiting or self._queries)
        return waits or (jetstream is not None and jetstream.api.busy)
