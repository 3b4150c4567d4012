"""A consumer on a memory store, driven by text commands, telling what happens line by line."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from jsctl.api.codec import decode, encode
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.times import format_duration, format_time, parse_duration
from jsctl.broker.jetstream.consumers.consumer import Consumer, config_entry
from jsctl.broker.jetstream.consumers.defaults import with_defaults
from jsctl.broker.jetstream.consumers.entries import encode_reset
from jsctl.broker.jetstream.consumers.facts import Advisory, ConsumerTurn
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.protocol.deliveries import Item, OutgoingMessage, singly
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore

START_NS = 1_700_000_000_000_000_000


class Play:
    """One stream, one consumer with a leading and a following replica. Time stands still
    between commands. Entries wait in `log` until `commit`, unless the consumer is R1."""

    def __init__(self) -> None:
        self.now = START_NS
        self.store = MemoryStore()
        self.config = ConsumerConfig()
        self.replicated = False
        self.held_back = False
        self.deaf: set[bytes] = set()
        self.log: list[tuple[bytes, int]] = []
        self.acks: dict[int, bytes] = {}
        self.out: list[str] = []
        self.sent: list[Item] = []
        self.ids = 0
        self.index = 0

    def run(self, script: str) -> str:
        """Run a block of commands; what happened, one line each."""
        self.out = []
        for line in script.strip().splitlines():
            name, *words = line.split()
            command: Callable[[list[str]], None] = getattr(self, f"do_{name}")
            command(words)
        return "\n".join(self.out) + "\n"

    # Commands.

    def do_consumer(self, words: list[str]) -> None:
        """consumer [R3] key=value ...: make it; lists are comma separated."""
        self.replicated = "R3" in words
        self.held_back = self.replicated
        values = _values(word for word in words if word != "R3")
        made = decode(ConsumerConfig, {"durable_name": "C", "ack_policy": "explicit", **values})
        self.config = with_defaults(made)
        self.consumer = Consumer("S", "C", self.config, acks_watched=True)
        self.follower = Consumer("S", "C", self.config)
        self._lead()

    def _lead(self) -> None:
        self.leader = ConsumerLeader(
            self.consumer,
            self.store,
            replicated=self.replicated,
            has_interest=lambda subject: subject not in self.deaf,
            jitter=lambda n: 0,
            new_id=self._new_id,
            now_ns=self.now,
        )
        self.turn()

    def _new_id(self) -> str:
        self.ids += 1
        return f"ID{self.ids:020}"

    def do_publish(self, words: list[str]) -> None:
        """publish subject [count] [size]: store messages."""
        count = int(words[1]) if len(words) > 1 else 1
        size = int(words[2]) if len(words) > 2 else 1
        subject, last = words[0].encode(), self.store.last_seq
        rows = [(last + 1 + i, self.now, subject, b"", b"x" * size) for i in range(count)]
        self.index += 1
        self.store.append(frame_of(rows), self.index)
        if hasattr(self, "leader"):
            seqs = [row[0] for row in rows if self.consumer.filters.match(subject)]
            self.leader.stored(last + 1, len(seqs), seqs if count % 2 else None)
            self.turn()

    def do_remove(self, words: list[str]) -> None:
        """remove seq ...: delete messages."""
        self.index += 1
        self.store.remove([int(word) for word in words], self.index)
        self.leader.stream_changed(self.store)
        self.turn()

    def do_pull(self, words: list[str]) -> None:
        """pull inbox [json or text]: a pull request."""
        self._pull(words[0].encode(), " ".join(words[1:]).encode())

    def _pull(self, inbox: bytes, payload: bytes) -> None:
        self.turn(pulls=[(b"", inbox, b"", payload, None)])

    def do_ack(self, words: list[str]) -> None:
        """ack seq[,seq] [word] [reply=r]: acknowledge what was delivered last with them."""
        reply, rest = b"", []
        for word in words[1:]:
            if word.startswith("reply="):
                reply = word.removeprefix("reply=").encode()
            else:
                rest.append(word)
        payload = " ".join(rest).encode()
        acks = []
        for seq in words[0].split(","):
            unknown = b"$JS.ACK.S.C.1.%s.%s.0.0" % (seq.encode(), seq.encode())
            acks.append((self.acks.get(int(seq), unknown), reply, b"", payload, None))
        self.turn(acks=acks)

    def do_tick(self, words: list[str]) -> None:
        """tick duration: time passes; the leader is woken at each of its deadlines."""
        until = self.now + parse_duration(words[0])
        for _ in range(1000):
            due = self.last.next_due_ns
            if due is None or due > until:
                break
            self.now = max(due, self.now)
            self.turn()
        self.now = until
        self.turn()

    def do_commit(self, words: list[str]) -> None:
        """commit: all proposed entries are applied."""
        log, self.log = self.log, []
        for entry, ticket in log:
            self._apply(entry)
            self._show(self.leader.committed(ticket))
        self.turn()

    def do_crash(self, words: list[str]) -> None:
        """crash: the follower takes over; uncommitted entries are lost."""
        self.log.clear()
        self._show(self.leader.close("Leadership Change"))
        other = Consumer("S", "C", self.config, acks_watched=True)
        other.restore(self.follower.snapshot())
        assert other.state.facts() == self.consumer.state.facts()
        self.consumer = other
        self._lead()

    def do_deaf(self, words: list[str]) -> None:
        """deaf subject ...: nobody listens there any more."""
        self.deaf.update(word.encode() for word in words)
        self.turn()

    def do_hears(self, words: list[str]) -> None:
        """hears subject ...: somebody listens again."""
        self.deaf.difference_update(word.encode() for word in words)
        self.turn()

    def do_flow(self, words: list[str]) -> None:
        """flow subject [header-lines]: an answer to a flow control request."""
        lines = b"".join(f"{word.replace('=', ': ')}\r\n".encode() for word in words[1:])
        headers = b"NATS/1.0\r\n" + lines + b"\r\n" if lines else b""
        self.turn(flow=[(words[0].encode(), b"", headers, b"", None)])

    def do_update(self, words: list[str]) -> None:
        """update key=value ...: another config is committed."""
        old = {key: value for key, value in encode(self.config).items()}
        self.config = with_defaults(decode(ConsumerConfig, {**old, **_values(words)}))
        self._apply(config_entry(self.config))
        self.turn()

    def do_pause(self, words: list[str]) -> None:
        """pause duration, 0 resumes."""
        until = format_time(self.now + parse_duration(words[0])) if words[0] != "0" else ""
        self.config = replace(self.config, pause_until=until)
        self._apply(config_entry(self.config))
        self.turn()

    def do_reset(self, words: list[str]) -> None:
        """reset seq: deliver again from there."""
        self._apply(encode_reset(int(words[0])))
        self.turn()

    def do_unpin(self, words: list[str]) -> None:
        """unpin: an operator releases the pinned client."""
        self.leader.unpin()
        self.turn()

    def do_close(self, words: list[str]) -> None:
        """close reason: what waiting pulls are told."""
        self._show(self.leader.close(" ".join(words), pending=words == ["Server", "Shutdown"]))

    def do_state(self, words: list[str]) -> None:
        """state: where the consumer stands, as committed."""
        state = self.consumer.state
        waiting = "" if self.leader.pull is None else f" waiting={self.leader.pull.prune()}"
        self.out.append(
            f"delivered={state.delivered_seq}/{state.delivered_stream}"
            f" floor={state.floor_seq}/{state.floor_stream}"
            f" unacked={list(state.pending)} redelivered={state.redelivered}"
            f" pending={self.leader.delivery.num_pending}{waiting}"
        )

    def do_acked(self, words: list[str]) -> None:
        """acked: sequences that the stream may let go of."""
        self.out.append(f"acked {self.consumer.take_acked()}")

    # The machinery.

    def _apply(self, entry: bytes) -> None:
        self.index += 1
        assert self.consumer.apply(self.index, entry) == self.follower.apply(self.index, entry)

    def turn(
        self,
        *,
        acks: Iterable[tuple[bytes, bytes, bytes, bytes, object]] = (),
        pulls: Iterable[tuple[bytes, bytes, bytes, bytes, object]] = (),
        flow: Iterable[tuple[bytes, bytes, bytes, bytes, object]] = (),
    ) -> None:
        """Give the leader a turn with what clients sent, and one more while it wants any."""
        if not hasattr(self, "leader"):
            return
        made = self.leader.turn(self.now, acks=list(acks), pulls=list(pulls), flow=list(flow))
        self._finish(made)
        while made.again:
            made = self.leader.turn(self.now)
            self._finish(made)

    def _finish(self, made: ConsumerTurn) -> None:
        self.last = made
        self._show(made.publish)
        self.out += [_advisory(fact) for fact in made.advisories]
        if made.inactive:
            self.out.append("inactive")
        if made.damaged:
            self.out.append(f"damaged {made.damaged}")
        if made.entry is None:
            return
        if self.held_back:
            self.log.append((made.entry, made.ticket))
            return
        self._apply(made.entry)
        self._show(self.leader.committed(made.ticket))

    def _show(self, said: list[OutgoingMessage]) -> None:
        items = singly(said)
        self.sent += items
        for subject, reply, headers, payload, shown in items:
            if shown:
                times, seq, cseq, _, left = reply.decode().split(".")[4:]
                self.acks[int(seq)] = reply
                extra = " " + _lines(headers) if headers else ""
                body = f" {len(payload)}B" if len(payload) != 1 else ""
                self.out.append(
                    f"-> {subject.decode()} {shown.decode()} #{seq} cseq={cseq} dc={times}"
                    f" left={left}{extra}{body}"
                )
            elif headers:
                asked = f" reply={reply.decode()}" if reply else ""
                self.out.append(f"-> {subject.decode()} {_lines(headers)}{asked}")
            else:
                self.out.append(f"-> {subject.decode()} (answer)")


def _lines(headers: bytes) -> str:
    lines = headers.decode().removeprefix("NATS/1.0").strip().split("\r\n")
    return "[" + "; ".join(line for line in lines if line) + "]"


def _advisory(fact: Advisory) -> str:
    parts = [f"! {fact.kind.name.lower()}"]
    if fact.stream_seq:
        parts.append(f"#{fact.stream_seq} cseq={fact.consumer_seq} dc={fact.deliveries}")
    if fact.ack_time_ns:
        parts.append(format_duration(fact.ack_time_ns))
    parts += [word for word in (fact.group, fact.pin, fact.reason) if word]
    return " ".join(parts)


_DURATIONS = {
    "ack_wait",
    "inactive_threshold",
    "idle_heartbeat",
    "max_expires",
    "priority_timeout",
    "backoff",
}
_LISTS = {"backoff", "filter_subjects", "priority_groups"}
_NUMBERS = {
    "max_deliver",
    "max_ack_pending",
    "max_waiting",
    "max_batch",
    "max_bytes",
    "opt_start_seq",
    "rate_limit_bps",
}


def _values(words: Iterable[str]) -> dict[str, object]:
    made: dict[str, object] = {}
    for word in words:
        key, _, text = word.partition("=")
        parts: list[object] = [_value(key, part) for part in text.split(",")]
        made[key] = parts if key in _LISTS else parts[0]
    return made


def _value(key: str, text: str) -> object:
    if key in _DURATIONS:
        return parse_duration(text)
    if key in _NUMBERS:
        return int(text)
    return text == "true" if text in ("true", "false") else text
