"""A hub and two leaf nodes for tables of lines, and what is compared of what they answer.

The hub n1 and the leaf node n2 have a JetStream domain each; the leaf node n3 has no JetStream.
Where a story's clients connect is the first word of its name: `hub`, `leaf` or `bare`.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jsctl.testing import Broker
from tests.commands.conftest import KINDS
from tests.commands.parity.clustered import by_text, documents, shape
from tests.commands.parity.conftest import (
    LEAFS,
    LINES,
    PASSWORD,
    accounts_of,
    config_of,
    keep_busy,
)
from tests.support.leafs import hub_block, leaf_port, linked, remote, spoke_block

Servers = dict[str, Broker]
"""By the first word of the stories that are told there."""

TOLD = re.compile(r"(?:^(?!\d\d:\d\d:\d\d (?!Nats server)).*\bn[1-3]\b.*\n)+", re.MULTILINE)
"""Lines about servers, which answer in any order."""
LINK = re.compile(r"\bL\d+\b")
"""A connection of servers, as reports number it."""
PASSING = re.compile(r"\b(cpu|mem|subscriptions)=\d+%?")
FIGURE = re.compile(r"(?<=│ )[ ]*-?\d[\d,.]*(?: [KMG]?i?B)?(?= *│)")
LOAD = re.compile(r"^( *n[1-3]: ).*\([\d.]+\)$", re.MULTILINE)
"""Of the processor: a server that rests has none, but on a busy machine."""
REPORT = re.compile(r" Leafnode | Connections Overview|Top \d+ Connections| Subs ")
BLOCKS = re.compile(
    r"^ +Subject: .*\n(?: +\w.*: .*\n)+\n?|^ +\S+\n(?: +Destination: .*\n)+\n?", re.MULTILINE
)
"""What an account maps, imports and exports, which is told in any order."""
FAST = "compression: s2_fast"
"""Of the links: what the servers choose by themselves differs."""
LINKS = re.compile(
    r"^ +(?:User|Account|System Account): .*\n|"
    r"^Connection Permissions:\n(?:\s*\n| +(?:Publish|Subscribe|Allow|Deny):.*\n| {9,}\S+\n)+",
    re.MULTILINE,
)
"""Of a link: nats-server answers who a client is at both ends of one, in any order."""
JETSTREAM = re.compile(r"jetstream: enabled,")


@contextmanager
def started(kind: str) -> Iterator[Servers]:
    """Servers that have the accounts of their stories, which are all linked, and so is SYS."""
    stories = sorted(path.stem for path in (LINES / LEAFS).glob("*.txt"))
    accounts = config_of(stories)
    logins = {"sys": "SYS", "plain": "PLAIN"} | {
        name: name for story in stories for name in accounts_of(story)
    }
    with ExitStack() as stack:

        def start(name: str, config: str) -> Broker:
            return stack.enter_context(KINDS[kind](config=config, name=name))

        hub = start("n1", f"jetstream {{ domain: hub }}\n{hub_block(FAST)}{accounts}")
        port = leaf_port(hub)
        dialing = spoke_block(
            *(
                remote(port, f"account: {account}, {FAST}", f"{user}:{PASSWORD}")
                for user, account in logins.items()
            )
        )
        leaf = start("n2", f"jetstream {{ domain: leaf }}\n{dialing}{accounts}")
        bare = start("n3", dialing + JETSTREAM.sub("", accounts))
        for server, count in ((hub, 2), (leaf, 1), (bare, 1)):
            linked(server, count * len(logins))
        for server in (hub, leaf):
            keep_busy(server)
        yield {"hub": hub, "leaf": leaf, "bare": bare}


def levelled(text: str, _settled: bool) -> str:
    """An answer without its order; what servers tell of themselves is figures of the moment."""
    if (found := documents(text)) is not None:
        plain = by_text([masked(one) for one in found])
        return json.dumps(plain[0] if len(plain) == 1 else plain)
    text = LOAD.sub(r"\1N", PASSING.sub(r"\1=N", LINK.sub("L", text)))
    if REPORT.search(text):
        text = FIGURE.sub("N", text)
    text = LINKS.sub("", text)
    blocks = iter(sorted(one.strip() for one in BLOCKS.findall(text)))
    text = BLOCKS.sub(lambda _: f"{next(blocks)}\n", text)
    return TOLD.sub(lambda lines: "".join(sorted(lines[0].splitlines(True))), text)


def masked(document: object) -> object:
    """Of what tells of servers, its shape; of several alike, one."""
    if isinstance(document, dict):
        if "server" in document or "server_id" in document:
            return shape(document)
        return {key: masked(value) for key, value in document.items() if key != "active"}
    if isinstance(document, list):
        found = by_text([masked(one) for one in document])
        return [one for at, one in enumerate(found) if one not in found[:at]]
    return document
