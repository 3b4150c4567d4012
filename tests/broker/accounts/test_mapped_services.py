"""Requests that are led into an account whose mappings lead them on."""

from jsctl.broker.options import (
    AccountOptions,
    ExportOptions,
    ImportOptions,
    MappingOptions,
    MappingTarget,
)
from tests.support.node_play import NodePlay, node_options, user


def account(name: str, source: str, destination: str, taken: ImportOptions) -> AccountOptions:
    """One that offers `source`, maps it, and takes something of another one."""
    return AccountOptions(
        name,
        (user(name.lower()),),
        exports=(ExportOptions(source, service=True),),
        imports=(taken,),
        mappings=(MappingOptions(source, (MappingTarget(destination),)),),
    )


def test_who_owns_a_service_maps_its_requests() -> None:
    accounts = (
        AccountOptions("A", (user("a"),), imports=(ImportOptions("B", "do.*", service=True),)),
        AccountOptions(
            "B",
            (user("b"),),
            exports=(ExportOptions("do.*", service=True),),
            mappings=(MappingOptions("do.*", (MappingTarget("done.$1"),)),),
        ),
        AccountOptions("$SYS", (user("sys"),)),
    )
    play = NodePlay(node_options(accounts=accounts))
    owner, taker = play.connect("b"), play.connect("a")
    owner.subscribe("*.x")
    taker.publish("do.x", b"hi", "back")
    ((subject, reply, payload),) = owner.messages
    assert (subject, payload) == ("done.x", b"hi")
    taker.subscribe("back")
    owner.publish(reply, b"answer")
    assert taker.messages == [("back", "", b"answer")]


def test_what_mappings_lead_back_ends_there() -> None:
    """No import leads round in a circle, but with the mappings they do."""
    accounts = (
        account("A", "ask.a", "do.x", ImportOptions("B", "do.*", service=True)),
        account("B", "do.*", "ask.a", ImportOptions("A", "ask.a", service=True)),
        AccountOptions("$SYS", (user("sys"),)),
    )
    play = NodePlay(node_options(accounts=accounts))
    owner, taker = play.connect("b"), play.connect("a")
    owner.subscribe(">")
    taker.publish("do.x", b"hi")
    assert [subject for subject, _, _ in owner.messages] == ["ask.a"]
