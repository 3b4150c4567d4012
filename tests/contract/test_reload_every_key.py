"""Every key that the grammar of configurations knows has a row: what a reload makes of a change."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.broker import conf
from jsctl.broker.conf.fields import Section
from jsctl.testing import HOST
from tests.contract.reload_rows import (
    DIFFERENT,
    LONE,
    OURS_ALONE,
    SAME,
    SAME_REFUSAL,
    lone,
    named,
)
from tests.contract.test_reload_keys import (
    BASE,
    JETSTREAM,
    MEMBER,
    TLS,
    UNSUPPORTED,
    Row,
    changed,
    filled,
    told,
)
from tests.contract.test_reload_links import named as named_links
from tests.support.certificates import make_certificates
from tests.support.kept import kept
from tests.support.reloading import KINDS, Reloading

ROOMS = {
    ("mapper", "TOP"): "",
    ("blocks", "TLS"): "tls",
    ("blocks", "CERTIFICATE"): "certs",
    ("fields", "COMPRESSION"): "compression",
    ("blocks", "CLUSTER_AUTHORIZATION"): "cluster.authorization",
    ("blocks", "CLUSTER"): "cluster",
    ("blocks", "JS_BATCH"): "batch",
    ("blocks", "JS_LIMITS"): "limits",
    ("blocks", "JETSTREAM"): "jetstream",
    ("raft", "RAFT"): "raft",
    ("users", "RESPONSES"): "allow_responses",
    ("users", "PERMISSIONS"): "permissions",
    ("users", "USER"): "user",
    ("users", "AUTHORIZATION"): "authorization",
    ("accounts", "LATENCY"): "latency",
    ("accounts", "TRACE"): "msg_trace",
    ("accounts", "TARGET"): "mapping",
    ("accounts", "EXPORT"): "export",
    ("accounts", "IMPORT_SOURCE"): "source",
    ("accounts", "IMPORT"): "import",
    ("accounts", "JETSTREAM"): "account.jetstream",
    ("accounts", "LIMITS"): "account.limits",
    ("accounts", "ACCOUNT"): "account",
    ("leafnodes", "LEAFNODES"): "leafnodes",
    ("leafnodes", "AUTHORIZATION"): "leafnodes.authorization",
    ("leafnodes", "USER"): "leafnodes.user",
    ("leafnodes", "REMOTE"): "remotes",
    ("leafnodes", "PROXY"): "proxy",
    ("gateways", "GATEWAY"): "gateway",
    ("gateways", "AUTHORIZATION"): "gateway.authorization",
    ("gateways", "REMOTE"): "gateways",
}
"""Tables of the grammar, and what the names of rows begin with."""
ELSEWHERE = ("absent", "operators")
"""Modules of blocks without effect, whose rows are of those as a whole and of `tls`, and of
operator mode, whose reloads are in test_operator_reloads.py and test_claims_reloads.py."""
Kept = Callable[[str], Reloading]


def keys() -> Iterator[str]:
    """All keys, by their usual names."""
    for module in pkgutil.iter_modules(conf.__path__):
        parts = vars(importlib.import_module(f"{conf.__name__}.{module.name}"))
        for name, section in parts.items():
            if isinstance(section, Section) and module.name not in ELSEWHERE:
                room = ROOMS[module.name, name]
                for key in {field.names[0] for field in section.by_name.values()}:
                    yield f"{room}.{key}" if room else key


def test_every_key_has_a_row() -> None:
    found = sorted(set(keys()) - named() - named_links())
    assert not found, "no row says what a reload makes of these:\n" + "\n".join(found)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for everything."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def base_of(name: str) -> str:
    """The base that a row is a change of."""
    if lone(name):
        return LONE
    if name.startswith("tls."):
        return TLS + "\n"
    return MEMBER if name.startswith(("cluster", "compression")) else BASE


@pytest.fixture(scope="module")
def servers(certificates: Path) -> Iterator[Kept]:
    """One server for each kind and base."""
    bases = {"lone": LONE, "tls": TLS + "\n", "member": MEMBER, "base": BASE}

    def start(which: str) -> Reloading:
        kind, _, base = which.partition(" ")
        return Reloading(kind, filled(bases[base], certificates))

    yield from kept(start)


@pytest.fixture
def server(kind: str, name: str, servers: Kept) -> Reloading:
    """The one for a row."""
    bases = {LONE: "lone", TLS + "\n": "tls", MEMBER: "member", BASE: "base"}
    return servers(f"{kind} {bases[base_of(name)]}")


def check(
    server: Reloading, base: str, row: Row, said: tuple[str, ...] | str, certificates: Path
) -> None:
    """A row is taken with these lines, or refused for this reason; then the base comes back."""
    row = Row(filled(row.old, certificates), filled(row.new, certificates), ())
    base = filled(base, certificates)
    config = told(server, changed(base, row))
    if isinstance(said, str):
        assert told(server, said) in server.must_refuse(config)
    else:
        lines = server.must_reload(config)
        assert lines == [told(server, one) for one in said]
        server.must_reload(base)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(SAME))
def test_both_take_it(server: Reloading, kind: str, name: str, certificates: Path) -> None:
    said = SAME[name].said
    if name == "ocsp_cache" and kind == "jsctl":
        said = ()  # It has no effect here.
    check(server, base_of(name), SAME[name], said, certificates)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(SAME_REFUSAL))
def test_both_refuse_it(server: Reloading, name: str, certificates: Path) -> None:
    row = SAME_REFUSAL[name]
    check(server, base_of(name), row, UNSUPPORTED + row.said[0], certificates)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", list(DIFFERENT))
def test_they_do_not_agree(server: Reloading, kind: str, name: str, certificates: Path) -> None:
    row, theirs, ours = DIFFERENT[name]
    said = theirs if kind == "nats-server" else ours
    check(server, base_of(name), row, said, certificates)


@pytest.mark.parametrize("kind", ["jsctl"])
@pytest.mark.parametrize("name", list(OURS_ALONE))
def test_nats_server_cannot_be_asked(server: Reloading, name: str, certificates: Path) -> None:
    row, said = OURS_ALONE[name]
    check(server, base_of(name), row, said, certificates)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("key", ["https", "https_port"])
def test_the_secure_monitoring_port_stays(kind: str, key: str, certificates: Path) -> None:
    base = filled(f'https: "{HOST}:@HTTP"\n{TLS}\n', certificates)
    with Reloading(kind, base) as server:
        row = {"https": f'https: "{HOST}:1"', "https_port": "https_port: 1"}
        config = base.replace(f'https: "{HOST}:@HTTP"', row[key])
        reason = server.must_refuse(config)
        assert reason.startswith((UNSUPPORTED + "HTTPSPort: old=", UNSUPPORTED + "HTTPHost: old="))


def has_jetstream(server: Reloading) -> bool:
    """Whether there is any."""
    page = server.broker.monitor("/jsz")
    assert isinstance(page, dict)
    return not page.get("disabled", False)


@pytest.mark.parametrize("kind", list(KINDS))
def test_jetstream_is_switched_on_and_off_by_nats_server_alone(kind: str) -> None:
    with Reloading(kind, LONE) as server:
        assert not has_jetstream(server)
        if kind == "nats-server":
            assert server.must_reload(LONE + JETSTREAM) == ["Reloaded: JetStream"]
            assert has_jetstream(server)
            server.must_reload(LONE)
        else:
            reason = server.must_refuse(LONE.replace("100000", "5") + JETSTREAM)
            assert reason == UNSUPPORTED + "JetStream: old=false, new=true"
            page = server.broker.monitor("/varz")
            assert isinstance(page, dict) and page["max_payload"] == 100_000, "as a whole"
        assert not has_jetstream(server)


def test_what_has_no_effect_is_warned_of_when_it_comes() -> None:
    with Reloading("jsctl", LONE) as server:
        lines = server.reload(LONE + "prof_port: 1")
        assert any('"prof_port" has no effect in this server' in line for line in lines)
        lines = server.reload(LONE.replace("100000", "5") + "prof_port: 1")
        assert not any("prof_port" in line for line in lines), "it was told"
