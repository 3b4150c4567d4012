"""Clusters of three for tables of lines, and what is compared of what they answer.

Who leads, which servers have the replicas of a stream and which of them answers first is drawn anew
on each side: names of servers all become the same one, and what is told of servers has no order.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jsctl.testing import Cluster
from tests.commands.conftest import KINDS
from tests.commands.parity.conftest import CLUSTERED, LINES, config_of

SIZE = 3
SERVER = re.compile(r"\bn[1-3]\b\*?")
"""One of them, with the star of a leader."""
ONE = "SRV"
PEER = re.compile(rf"(?<=│ {ONE} ) *│ [A-Za-z0-9]{{8}}(?= │)")
"""The id of a server, in the table of those that administer JetStream."""
GROUP = re.compile(r"\b[SC]-R\d[FM]-\w+")
TOLD = re.compile(rf"(?:^(?!\d\d:\d\d:\d\d (?!Nats server)).*\b{ONE}\b.*\n)+", re.MULTILINE)
"""Lines about several; what was done one after the other stays so."""
STATE = re.compile(rf"(Replica: {ONE}, ).*")
"""How far a replica is, which has just been made or is about to lead."""
SETTLED = {"active", "peer", "leader_since", "lang", "rtt", "cid", "config_digest", "store_dir"}
OWN = SETTLED | {"feature_flags", "git_commit", "sync_always"}
"""What only one kind of server tells of itself."""
OF_THE_MOMENT = SETTLED | {"current", "offline", "lag"}
"""What is another one on each side, and what it is besides while replicas begin."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A cluster, as one place to connect to."""

    cluster: Cluster

    @property
    def url(self) -> str:
        """Of its first server: reports say where a client is."""
        return self.cluster.urls[0]

    @property
    def monitor_url(self) -> str:
        """Of the same server."""
        return next(iter(self.cluster)).monitor_url


@contextmanager
def started(kind: str) -> Iterator[Whole]:
    """A cluster that has the accounts of its stories."""
    stories = [path.stem for path in (LINES / CLUSTERED).glob("*.txt")]
    with Cluster(SIZE, server=KINDS[kind], config=config_of(stories)) as cluster:
        yield Whole(cluster)


def levelled(text: str, settled: bool) -> str:
    """An answer without which servers it is about.

    It is `settled` where nothing has just been changed: then the states of replicas count.
    """
    text = PEER.sub("│ ID", GROUP.sub("GROUP", SERVER.sub(ONE, text)))
    if (found := documents(text)) is not None:
        passing = SETTLED if settled else OF_THE_MOMENT
        plain = by_text([masked(one, passing) for one in found])
        return json.dumps(plain[0] if len(plain) == 1 else plain)
    if not settled:
        text = STATE.sub(r"\1STATE", text)
    return TOLD.sub(lambda lines: "".join(sorted(lines[0].splitlines(True))), text)


def documents(text: str) -> list[object] | None:
    """Those that a text consists of, one after the other; None if it is another one."""
    found: list[object] = []
    rest = text.strip()
    while rest:
        if rest[0] not in "[{":
            return None
        try:
            document, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            return None
        found.append(document)
        rest = rest[end:].lstrip()
    return found or None


def masked(document: object, passing: set[str]) -> object:
    """Without what passes; lists of what servers have are sorted."""
    if isinstance(document, dict):
        if "server" in document or "server_id" in document:
            return shape(document)
        return {
            key: masked(value, passing) for key, value in document.items() if key not in passing
        }
    if isinstance(document, list):
        found = [masked(one, passing) for one in document]
        return by_text(found) if any(ONE in one for one in map(json.dumps, found)) else found
    return document


def shape(document: object) -> object:
    """What a server tells of itself: its figures are those of the moment, and so are its lists, of
    whose entries one of each kind is left. Fields that only our broker has are left out, and the
    replicas of the meta group, which in statistics only that server lists which leads it."""
    if isinstance(document, dict):
        known = (key for key in document if key not in OWN and not key.startswith("jsctl_"))
        of_meta = {"replicas"} if "cluster_size" in document else set()
        return {key: shape(document[key]) for key in known if key not in of_meta}
    if isinstance(document, list):
        found = by_text([shape(one) for one in document])
        return [one for at, one in enumerate(found) if one not in found[:at]]
    return "number" if isinstance(document, int | float) else type(document).__name__


def by_text(documents: list[object]) -> list[object]:
    return sorted(documents, key=lambda one: json.dumps(one, sort_keys=True))
