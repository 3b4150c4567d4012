"""What of JetStream does not cross a leaf node's connection.

A server with JetStream answers its API to its own clients; through a leaf node only below the
prefix of its domain. So the API without a domain is kept from crossing, and what a domain's own
server answers from leaving it. Where the system accounts of a server with JetStream and of one
without meet, and both name the same domain, requests go that way, with the name of the account
that asks.

Where both have a JetStream and name the same domain, a nats-server becomes a part of the other's.
Brokers do not (decision 42): each goes on with its own, nothing of it crosses, and the log says so.

Neither do the frames of brokers, whatever the domains: a leaf node of a nats-server, whose other
clusters are brokers, would be told of those through it, and be taken for one of theirs.
"""

from jsctl.broker.leafnodes.types import LeafSettings
from jsctl.dataclass import dataclass

API = b"$JS.API.>"
CLIENTS = (API, b"$KV.>", b"$OBJ.>")
"""What clients ask for without naming a domain."""
BROKERS = b"_JSB.>"
"""What brokers say to each other, in the system account."""
EVERYTHING = (BROKERS, b"$JSC.>", b"$NRG.>", *CLIENTS)
"""With what servers of a cluster say to each other."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """What is kept from crossing, in both directions or only from leaving; and what the log says
    of that."""

    both: tuple[bytes, ...] = ()
    leaving: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()
    warning: str = ""


OPEN = Barrier()


def barrier(
    settings: LeafSettings,
    remote_domain: str,
    remote_name: str,
    *,
    remote_jetstream: bool,
    system: bool,
) -> Barrier:
    """Between this server and another, over the connection of the system account or another."""
    leaving: tuple[bytes, ...] = ()
    if settings.domain == remote_domain and (settings.jetstream or settings.extends):
        if not system:
            return Barrier(CLIENTS)
        if not (settings.jetstream and remote_jetstream):
            text = (
                f'Extending JetStream domain "{remote_domain}" as System Account connected from'
                f" server {remote_name}"
            )
            return Barrier((BROKERS,), notes=(text,))
        text = (
            f'JetStream domain "{remote_domain}" is not extended, {remote_name} has one of the same'
            " name: give the leaf node a domain of its own"
        )
        note = f"System account connected from {remote_name}"
        return Barrier(EVERYTHING, notes=(note,), warning=text)
    if settings.domain and settings.jetstream:
        leaving = (f"$JS.{settings.domain}.API.>".encode(),)
    if system:
        text = "JetStream not extended, domains differ"
        return Barrier(EVERYTHING, leaving, (f"System account connected from {remote_name}", text))
    note = f'JetStream using domains: local "{settings.domain}", remote "{remote_domain}"'
    return Barrier(CLIENTS, leaving, (note,))
