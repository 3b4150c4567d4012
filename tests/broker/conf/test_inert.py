"""An option that nothing reads is warned of, and one that something reads is not."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

from jsctl.broker import options
from jsctl.broker.conf import accounts, blocks, leafnodes, mapper, raft, users
from jsctl.broker.conf.fields import Field, Section
from jsctl.broker.conf.mapper import from_text

BROKER = Path(options.__file__).parent
TOLD_OTHERWISE = {"latency_subject", "latency_sampling", "proxy_required"}
"""The whole block is warned of; anything but false is refused."""
ASKED_BY_OPTIONS = {"given", "no_system_account"}
NOT_IN_A_FILE = {
    "dial_retry_ns",
    "peer_down_min_ns",
    "peer_down_max_ns",
    "inflight_messages_max",
    "uncommitted_bytes_max",
}


def unread() -> set[str]:
    """Attributes that no module outside of the configuration asks for, by their names."""
    sources = [
        path.read_text()
        for path in BROKER.rglob("*.py")
        if not {"conf", "claims"} & set(path.parts) and path.name != "options.py"
    ]
    read = set(re.findall(r"\.([a-z_0-9]+)\b", "\n".join(sources)))
    kinds = [one for one in vars(options).values() if is_dataclass(one)]
    return {field.name for kind in kinds for field in fields(kind)} - read


def all_fields() -> Iterator[Field]:
    """Of every table."""
    for module in (accounts, blocks, leafnodes, mapper, raft, users):
        for section in vars(module).values():
            if isinstance(section, Section):
                yield from section.by_name.values()


def test_what_nothing_reads_is_warned_of() -> None:
    warned = {one.attribute.rpartition(".")[2] for one in all_fields() if one.inert}
    assert unread() - TOLD_OTHERWISE - ASKED_BY_OPTIONS - NOT_IN_A_FILE == warned


def test_the_warning() -> None:
    found = from_text("no_fast_producer_stall: on\njetstream { max_buffered_msgs: 7 }", "x", {})
    assert found.options.client.no_fast_producer_stall
    assert found.options.jetstream.limits.buffered_messages_max == 7
    assert found.options.warnings == (
        'x:1:1: "no_fast_producer_stall" has no effect in this server',
        'x:2:13: "max_buffered_msgs" has no effect in this server',
    )
