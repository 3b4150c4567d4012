"""The `leafnodes` block as options, and what is wrong with one."""

import pytest

from jsctl.broker.compression_options import Compression
from jsctl.broker.conf.check import check, start_warnings
from jsctl.broker.conf.mapper import from_text
from jsctl.broker.errors import ConfigErrors
from jsctl.broker.leafnode_options import (
    LeafLogin,
    LeafNodeOptions,
    LeafRemote,
    LeafUrl,
    LeafUser,
)
from jsctl.broker.options import Options
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions
from jsctl.broker.write_options import WriteTimeout
from tests.contract.test_leafnode_configuration import ACCOUNTS, BAD, GOOD, ONE, STRICTER, leaf
from tests.support.configurations import Bad

SECOND_NS = 1_000_000_000


def options(text: str) -> Options:
    """Of a configuration."""
    return from_text(text, "x.conf", {}).options


def test_without_the_block_there_is_nothing_to_do() -> None:
    assert options("port: 1").leafnodes == LeafNodeOptions()
    assert not LeafNodeOptions().enabled
    assert LeafNodeOptions(port=1).listens and LeafNodeOptions(port=1).enabled
    assert LeafNodeOptions(remotes=(LeafRemote(),)).enabled


def test_everything_has_its_place() -> None:
    found = options(GOOD["leafnodes"]).leafnodes
    tls = TlsOptions(
        "@CERT",
        "@KEY",
        "@CA",
        verify=True,
        handshake_first=HandshakeFirst.AUTO,
        handshake_first_wait_ns=300_000_000,
    )
    users = (LeafUser("l", "l", "A"), LeafUser("m", "m"))
    one = LeafRemote(
        urls=(LeafUrl("127.0.0.1", 1),),
        account="A",
        nkey=ONE.text,
        deny_imports=("x.>",),
        deny_exports=("y",),
        no_randomize=True,
        isolated=True,
        request_isolation=True,
        dial_timeout_ns=SECOND_NS,
        disabled=True,
        compression=Compression("s2_auto", (0, SECOND_NS, 2 * SECOND_NS)),
        ignore_discovered=True,
    )
    two = LeafRemote(account="$SYS", credentials="/none.creds", disabled=True)
    assert found == LeafNodeOptions(
        host="127.0.0.1",
        port=-1,
        advertise="me:1",
        no_advertise=True,
        login=LeafLogin(users=users, timeout_ns=2 * SECOND_NS),
        tls=tls,
        remotes=(one, two),
        reconnect_ns=2 * SECOND_NS,
        dial_timeout_ns=2 * SECOND_NS,
        min_version="2.10.0",
        isolated=True,
        write_deadline_ns=5 * SECOND_NS,
        compression=Compression("s2_auto"),
        write_timeout=WriteTimeout.RETRY,
    )


def test_urls_have_ports_and_credentials() -> None:
    text = "urls: ['nats://u%40:p@h', 'tls://t@[::1]:5', 'h:9', 'nats-leaf://h:9']"
    (remote,) = options(leaf(f"remotes: [ {{ {text} }} ]")).leafnodes.remotes
    assert remote.urls == (
        LeafUrl("h", 7422, "u@", "p", "nats"),
        LeafUrl("::1", 5, "t", "", "tls"),
        LeafUrl("h", 9),
        LeafUrl("h", 9),
    )
    assert remote.urls[0].text == "nats://u@:[REDACTED]@h:7422"
    assert remote.urls[1].text == "tls://t@[::1]:5"
    assert "p@h" not in remote.text


def test_the_login_time_follows_the_handshake() -> None:
    assert LeafNodeOptions().login_ns == 2 * SECOND_NS
    assert LeafNodeOptions(tls=TlsOptions(timeout_ns=5 * SECOND_NS)).login_ns == 6 * SECOND_NS
    assert LeafNodeOptions(login=LeafLogin(timeout_ns=7)).login_ns == 7


def test_what_has_no_effect_is_said() -> None:
    said = "\n".join(options(GOOD["leafnodes"]).warnings)
    for name in ("a remote", '"proxy"', '"jetstream_cluster_migrate"'):
        assert f"{name} has no effect" in said
    for name in ('"ws_compression"', '"ws_no_masking"'):
        assert f"{name} has no effect" in said
    assert "no effect" not in "\n".join(options(leaf("compression: off")).warnings)


@pytest.mark.parametrize("name", list(GOOD))
def test_what_is_right_is_taken(name: str) -> None:
    assert from_text(GOOD[name], "x.conf", {}).strict_errors == ()


@pytest.mark.parametrize("bad", [*BAD, *STRICTER])
def test_what_is_wrong_is_told_with_place_and_remedy(bad: Bad) -> None:
    with pytest.raises(ConfigErrors) as caught:
        from_text(bad, "x.conf", {})
    assert any(bad.said in str(one) for one in caught.value.errors)
    assert all(one.place.startswith("x.conf:") and one.remedy for one in caught.value.errors)


def test_secrets_are_not_repeated() -> None:
    with pytest.raises(ConfigErrors) as caught:
        options("leafnodes { remotes: [ {url: 'nats://u:secret@:x', seed: SUSECRET} ] }")
    assert "secret" not in str(caught.value).lower().replace("x:1:", "")


def test_a_listener_needs_its_certificate() -> None:
    wanted = options(leaf("tls { ca_file: ca.pem }"))
    assert [error.reason for error in check(wanted)] == [
        "leafnodes.tls: a certificate and its key are needed"
    ]
    dialing = "leafnodes { remotes: [ {url: h, tls { ca_file: ca.pem }} ] }"
    assert check(options(dialing)) == []


def test_what_is_advertised_is_an_address() -> None:
    wrong = options(leaf('advertise: "a:b:c"'))
    assert "LeafNode.Advertise" in check(wrong)[0].reason


def test_an_operator_is_warned_of_what_is_not_safe() -> None:
    plain = start_warnings(options(leaf("authorization { user: a, password: p }")))
    assert plain == ["Plaintext passwords detected, use nkeys or bcrypt"]
    insecure = "leafnodes { remotes: [ {url: h, tls { insecure: true }} ] }"
    assert start_warnings(options(insecure))[0].endswith("DO NOT USE IN PRODUCTION!")
    assert start_warnings(options(ACCOUNTS + leaf(""))) == [
        "Plaintext passwords detected, use nkeys or bcrypt"
    ]
