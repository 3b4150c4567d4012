"""The way of a message through servers, as a tree of lines."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

from jsctl.api.times import format_duration, parse_time

Event = Mapping[str, object]

CLIENT, ROUTER, GATEWAY, LEAF, JETSTREAM = 0, 1, 2, 4, 5
KINDS = ("Client", "Router", "Gateway", "System", "Leafnode", "JetStream", "Account")
ARROWS = {CLIENT: "--C", ROUTER: "-->", GATEWAY: "==>", LEAF: "~~>", JETSTREAM: "--J"}
_NUMBERS = {CLIENT: "cid", ROUTER: "rid", GATEWAY: "gid", LEAF: "lid"}
LEGEND = "Legend: Client: --C Router: --> Gateway: ==> Leafnode: ~~> JetStream: --J Error: --X"
INDENT = 4


class Passage(Protocol):
    """What one server told."""

    @property
    def server(self) -> Mapping[str, object]: ...
    @property
    def events(self) -> list[Event]: ...
    @property
    def ingress(self) -> Event | None: ...
    def of(self, kind: str) -> Iterator[Event]:
        """Its events of a type."""

    @property
    def links(self) -> "Mapping[str, Passage]": ...


def _text(event: Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _number(event: Event, key: str) -> int:
    value = event.get(key)
    return value if isinstance(value, int) else 0


def _time(event: Event) -> int:
    try:
        return parse_time(_text(event, "ts"))
    except ValueError:
        return 0


def _kind(event: Event) -> str:
    """`Client "name" cid:3`."""
    kind = _number(event, "kind")
    word = KINDS[kind] if 0 <= kind < len(KINDS) else "Unknown Kind"
    name = f'"{_text(event, "name")}" ' if event.get("name") else ""
    return f"{word} {name}{_NUMBERS.get(kind, 'id')}:{_number(event, 'cid')}"


def passage_lines(
    passage: Passage, *, stamped: bool, since_ns: int = 0, depth: int = 0
) -> Iterator[str]:
    """What a server did, and below each link what the next one did.

    With `stamped` each line begins with the time since the event above it.
    """
    ingress = passage.ingress
    start_ns = since_ns or (_time(ingress) if ingress else 0)
    pad = " " * (INDENT * depth)

    def line(text: str, event: Event) -> str:
        if not stamped:
            return pad + text
        passed_ns = (_time(event) - start_ns + 500) // 1000 * 1000 if _time(event) else 0
        stamp = "Skew" if passed_ns < 0 else format_duration(passed_ns)
        return f"{pad}[{stamp}] {text}"

    for event in _within(passage):
        yield from (line(text, event) for text in _event(passage, event))
    egresses = list(passage.of("eg"))
    if not egresses and ingress and not _number(ingress, "kind") and not ingress.get("error"):
        yield f"{pad}--X No active interest"
    for event in egresses:
        yield from (line(text, event) for text in _event(passage, event))
        link = passage.links.get(_text(event, "hop"))
        if link is not None:
            at_ns = _time(event)
            yield from passage_lines(link, stamped=stamped, since_ns=at_ns, depth=depth + 1)


def _within(passage: Passage) -> Iterator[Event]:
    """What happened inside of a server, in the order that it is shown in."""
    for kind in ("in", "sm", "si", "se", "js"):
        yield from passage.of(kind)


def _event(passage: Passage, event: Event) -> Iterator[str]:
    kind, target = event.get("type"), _text(event, "to")
    if kind == "in":
        yield from _ingress(passage, event)
    elif kind == "sm":
        yield f'    Mapping subject:"{target}"'
    elif kind == "si":
        names = f'from:"{_text(event, "from")}" to:"{target}"'
        yield f'    Service Import {names} account:"{_text(event, "acc")}"'
    elif kind == "se":
        yield f'    Stream Export subject:"{target}" account:"{_text(event, "acc")}"'
    elif kind == "js":
        yield from _jetstream(event)
    else:
        yield from _egress(event)


def _ingress(passage: Passage, event: Event) -> Iterator[str]:
    if event.get("error") and not passage.server.get("id"):
        yield f"  !!! Ingress Error: {_text(event, 'error')}"
        return
    server = passage.server
    parts = [_kind(event)]
    if server.get("cluster") and _number(event, "kind") in (CLIENT, GATEWAY):
        parts.append(f'cluster:"{server["cluster"]}"')
    parts += [f'server:"{server.get("name")}"', f'version:"{server.get("ver", "")}"']
    yield " ".join(parts)
    if event.get("error"):
        yield f"--X Error: {_text(event, 'error')}"


def _jetstream(event: Event) -> Iterator[str]:
    if event.get("error") and not event.get("stream"):
        yield f"!!! Expected JetStream event: {_text(event, 'error')}"
        return
    action = "no interest" if event.get("nointerest") else "stored"
    names = f'stream:"{_text(event, "stream")}" subject:"{_text(event, "subject")}"'
    yield f'--J JetStream action:"{action}" {names}'
    if event.get("error"):
        yield f"--X Error: {_text(event, 'error')}"


def _egress(event: Event) -> Iterator[str]:
    parts = [ARROWS.get(_number(event, "kind"), ""), _kind(event)]
    for label, key in (("account", "acc"), ("subject", "sub"), ("queue", "queue")):
        if event.get(key):
            parts.append(f'{label}:"{_text(event, key)}"')
    yield " ".join(parts)
    if event.get("error"):
        yield f"  --X Error: {_text(event, 'error')}"


def _counted(passage: Passage) -> Counter[str]:
    counts: Counter[str] = Counter()
    for event in passage.of("eg"):
        kind = _number(event, "kind")
        counts[KINDS[kind] if 0 <= kind < len(KINDS) else "Unknown Kind"] += 1
    counts["JetStream"] += sum(1 for event in passage.of("js") if event.get("stream"))
    for link in passage.links.values():
        counts += _counted(link)
    return counts


def summary_lines(passage: Passage) -> Iterator[str]:
    """The legend, and how many clients, servers and streams got the message."""
    yield from ("", LEGEND, "")
    counts = +_counted(passage)
    if counts:
        yield from ("Egress Count:", "")
        longest = max(len(kind) for kind in counts)
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {kind:>{longest}}: {count:,}"
    if counts["JetStream"] > 1:
        yield f"WARNING: The message was received by {counts['JetStream']} streams"


def passage_document(passage: Passage) -> dict[str, object]:
    """The tree for programs: what each server told, and what its links led to."""
    links = {hop: passage_document(link) for hop, link in passage.links.items()}
    return {"server": dict(passage.server), "events": list(passage.events), "links": links}
