"""From configuration texts to options: values, units, errors that are all told at once."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.conf.check import check, start_warnings
from jsctl.broker.conf.mapper import TOP, from_text
from jsctl.broker.errors import ConfigError, ConfigErrors
from jsctl.broker.login_options.permissions import ResponsePermission, SubjectPermission
from jsctl.broker.options import (
    MIB,
    MINUTE_NS,
    SECOND_NS,
    ClientLimits,
    ClusterOptions,
    ExportOptions,
    JetStreamLimits,
    JetStreamOptions,
    MappingTarget,
    Options,
    SyncMode,
    Url,
    UserOptions,
)
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions
from tests.support.quick import examples


def options(text: str) -> Options:
    return from_text(text, "x.conf", {}).options


def test_flat_options_end_in_their_parts() -> None:
    found = options(
        "listen: '127.0.0.1:-1'\nhttp: 8222\nmax_payload: 2MB\nping_interval: '30s'\n"
        "write_deadline: '1.5s'\ndebug: true\nlogfile: /x\nserver_tags: [a, ' B', A, '']"
        "\nmax_conn: -1"
    )
    assert (found.listen.host, found.listen.port) == ("127.0.0.1", -1)
    assert found.monitoring.port == 8222
    assert found.client.payload_bytes_max == 2 * MIB
    assert found.client.ping_interval_ns == 30 * SECOND_NS
    assert found.client.write_deadline_ns == 1_500_000_000
    assert found.client.connections_max == 0
    assert (found.log.debug, found.log.file) == (True, "/x")
    assert found.server_tags == ("a", "b")


@pytest.mark.parametrize("written", ["a q", " a q", "a  q ", "a\tq"])
def test_spaces_around_a_queue_are_nothing(written: str) -> None:
    user = f'{{user: u, permissions: {{ subscribe: {{deny: "{written}"}} }} }}'
    (found,) = options(f"authorization {{ users: [ {user} ] }}").auth.users
    assert found.permissions is not None
    assert found.permissions.subscribe == SubjectPermission(deny=("a q",))


@pytest.mark.parametrize(
    "text",
    [
        "max_control_line: 0",
        "max_payload: 0",
        "max_pending: 0",
        "max_closed_clients: 0",
        "ping_max: 0",
        "ping_interval: '0s'",
        "ping_interval: '-1s'",
        "cluster { ping_max: 0 }",
        "cluster { pool_size: 0 }",
        "cluster { ping_interval: '0s' }",
        "cluster { ping_interval: '-1s' }",
        "jetstream { request_queue_limit: 0 }",
        "jetstream { limits { default_max_consumers: 0 } }",
        "jetstream { limits { batch { timeout: '-1s' } } }",
        "tls { timeout: 0 }",
        "tls { timeout: '-1s' }",
    ],
)
def test_nothing_stands_for_the_default(text: str) -> None:
    """Taken as it is, it would let nobody say a word, or give up all who are pinged."""
    found = options(text)
    assert (found.client, found.cluster) == (ClientLimits(), ClusterOptions())
    assert found.jetstream.limits == JetStreamLimits()
    assert found.tls in (None, TlsOptions())


@pytest.mark.parametrize("threshold", ["0s", "-1s"])
def test_answers_have_time_to_come(threshold: str) -> None:
    """Each request would take away the way back of the one before."""
    text = f"accounts {{ A {{ exports: [ {{service: s, response_threshold: '{threshold}'}} ] }} }}"
    (account,) = options(text).accounts
    assert account.exports == (ExportOptions("s", service=True),)


def test_users_and_permissions() -> None:
    found = options(
        "authorization { timeout: 3, default_permissions: { publish: x }\n users = [\n"
        "  {user: a, password: b, permission: {pub: ['a.>', b], sub: {allow: 'c q', deny: d}}}\n"
        "  {user: e, pass: f, permissions: {allow_responses: {max: 5, expires: '1m'}}}\n"
        "  {user: g, pass: h}\n ] }"
    )
    first, second, third = found.auth.users
    assert found.auth.timeout_ns == 3 * SECOND_NS
    assert first.permissions is not None and second.permissions is not None
    assert first.permissions.publish == SubjectPermission(allow=("a.>", "b"))
    assert first.permissions.subscribe == SubjectPermission(allow=("c q",), deny=("d",))
    assert second.permissions.responses == ResponsePermission(5, MINUTE_NS)
    assert second.permissions.publish == SubjectPermission(allow=())
    assert third.permissions == found.auth.default_permissions


def test_accounts() -> None:
    found = options(
        "accounts {\n A { users: [{user: a, pass: b}], jetstream: {max_mem: 1G, max_streams: 5}\n"
        "  exports: [{stream: 'e.>'}, {service: s, response_type: stream, accounts: [B]}] }\n"
        " B { jetstream: enabled\n imports: [{stream: {account: A, subject: 'e.>'}, prefix: p}\n"
        "  {service: {account: A, subject: s}}]\n mappings: {x: [{dest: y, weight: '30%'}]} } }"
    )
    first, second = found.accounts
    assert first.jetstream is not None
    assert (first.jetstream.memory_bytes_max, first.jetstream.streams_max) == (10**9, 5)
    assert [(e.subject, e.service, e.response_type, e.accounts) for e in first.exports] == [
        ("e.>", False, "singleton", ()),
        ("s", True, "stream", ("B",)),
    ]
    assert [(i.account, i.subject, i.service, i.to, i.prefix) for i in second.imports] == [
        ("A", "e.>", False, "", "p"),
        ("A", "s", True, "s", ""),
    ]
    assert second.mappings[0].targets == (MappingTarget("y", 30),)
    assert found.auth_required


def test_jetstream_cluster_tls_and_raft() -> None:
    found = options(
        "jetstream { store_dir: d, sync: interval, sync_interval: '10s', max_file: 10MB,\n"
        " limits { duplicate_window: '1m', batch { max_msgs: 5 } }, max_buffered_msgs: 7 }\n"
        "cluster { name: c, listen: ':6222', routes: ['nats://u:p@h:1'],\n"
        " authorization { user: u, password: p } }\n"
        "tls { cert_file: c, key_file: k, handshake_first: '80ms', timeout: 1.5 }\n"
        "raft { heartbeat: '50ms', election_min: '200ms', election_max: '400ms' }"
    )
    jetstream = found.jetstream
    assert (jetstream.enabled, jetstream.store_dir) == (True, "d")
    assert (jetstream.sync, jetstream.sync_interval_ns) == (SyncMode.INTERVAL, 10 * SECOND_NS)
    assert jetstream.limits.duplicate_window_ns == MINUTE_NS
    assert jetstream.limits.batch_messages_max == 5
    assert jetstream.limits.buffered_messages_max == 7
    assert found.cluster.routes == (Url("h", 1, "u", "p"),)
    assert (found.cluster.host, found.cluster.port, found.cluster.user) == ("0.0.0.0", 6222, "u")
    assert found.tls is not None
    assert found.tls.handshake_first is HandshakeFirst.AUTO
    assert found.tls.handshake_first_wait_ns == 80_000_000
    assert found.tls.timeout_ns == 1_500_000_000
    assert found.raft.heartbeat_ns == 50_000_000


def test_an_interval_alone_does_not_weaken_durability_and_says_so() -> None:
    found = options("jetstream { sync_interval: '2m' }")
    assert found.jetstream.sync is SyncMode.ALWAYS
    assert found.warnings == (
        'x.conf:1:1: "sync_interval" has no effect in this server (every acknowledged message is '
        "synced; write sync: interval to change that)",
    )


def test_options_without_effect_are_named() -> None:
    found = options("websocket { }\nmqtt { }\nocsp: false")
    assert found.warnings == (
        'x.conf:1:1: "websocket" has no effect in this server (nothing listens for websockets)',
        'x.conf:2:1: "mqtt" has no effect in this server (nothing listens for MQTT)',
        'x.conf:3:1: "ocsp" has no effect in this server',
    )


def test_all_errors_are_told_in_order() -> None:
    with pytest.raises(ConfigErrors) as caught:
        options("prot: 1\njetstream {\n max_filestore: 1\n}\nport: x\nping_interval: '1 day'")
    assert [str(error) for error in caught.value.errors] == [
        'x.conf:1:1: unknown field "prot" (did you mean "port"?)',
        'x.conf:3:2: unknown field "max_filestore" in jetstream (did you mean "max_file_store"?)',
        "x.conf:5:1: port: expected an integer, found a string ('x') "
        "(write a whole number without quotes)",
        "x.conf:6:1: ping_interval: '1 day' is no duration "
        '(write for example "10s", "2m", "500ms")',
    ]


@pytest.mark.parametrize(
    "text",
    [
        "operator: x.jwt",
        "trusted_keys: [O]",
        "jetstream { key: secret }",
        "authorization { proxy_required: true }",
        "accounts { A {}, B { imports [ {stream: {account: C, subject: x}} ] } }",
        "accounts { A { users [{user: a, pass: a}] }, B { users [{user: a, pass: b}] } }",
        "accounts { A { exports [ {stream: a, service: b} ] } }",
        "cluster { authorization { token: x } }",
        "tls { key_file: k }",
        "raft { election_min: '100ms' }",
        "store_dir: a\njetstream { store_dir: b }",
        "accounts { A { msg_trace: 'a.*' } }",
        *(f'{name}: "a\\x00b"' for name in ("log_file", "pid_file", "ports_file_dir", "store_dir")),
        'tls { cert_file: a, key_file: b, ca_file: "a\\x00" }',
        'tls { cert_file: "a\\x00", key_file: b }',
        'jetstream { store_dir: "a\\x00" }',
        "accounts { A { msg_trace { dest: 'a.>' } } }",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        options(text)


def test_variables_are_no_unknown_fields() -> None:
    assert options("PORT: 4333\nport: $PORT").listen.port == 4333


def test_what_accounts_share_is_no_account() -> None:
    shared = "RULES { publish: { allow: a } }"
    found = options(
        f"accounts {{ {shared}, A {{ users [ {{ user: u, permissions: $RULES }} ] }} }}"
    )
    assert [account.name for account in found.accounts] == ["A"]
    rules = found.accounts[0].users[0].permissions
    assert rules is not None and rules.publish == SubjectPermission(("a",))


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(sorted(TOP.by_name)),
    st.sampled_from(["1", "-1", "x", "'a b'", "true", "{ }", "[ ]", "[ { } ]", "{ users: [1] }",
                     "{ A: { users: [ {} ] } }", "{ a: { b: 1 } }", "1.5", "[ 1, x ]",
                     "2020-01-01T00:00:00Z", "{ name: 1, store_dir: [] }"]),
)  # fmt: skip
def test_any_value_gives_options_or_config_errors(name: str, value: str) -> None:
    try:
        assert isinstance(options(f"{name}: {value}"), Options)
    except ConfigError as error:
        assert str(error)


JS = JetStreamOptions(enabled=True)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (Options(server_name="a b"), "server name cannot contain spaces"),
        (options("max_payload: 2MB\nmax_pending: 1MB"), "max_payload (2097152) cannot be higher"),
        (Options(jetstream=JS, cluster=ClusterOptions(port=1)), "`server_name` to be set"),
        (
            Options(server_name="a", jetstream=JS, cluster=ClusterOptions(port=1)),
            "`cluster.name` to be set",
        ),
        (Options(cluster=ClusterOptions(routes=(Url("h", 1),))), "solicited routes require"),
        (Options(no_auth_user="x"), 'no_auth_user: "x" not present'),
        (Options(system_account="X"), 'system account "X" is not declared'),
        (options("accounts { $SYS { jetstream: enabled } }"), "on the system account"),
        (options("lame_duck_grace_period: '3m'"), "lame duck grace period"),
        (options("https_port: 1"), "https_port needs a tls block"),
    ],
)
def test_contradictions_are_found(wrong: Options, text: str) -> None:
    assert text in str(check(wrong)[0])


def test_sound_options_have_no_contradictions_and_weak_ones_warn() -> None:
    assert check(Options()) == []
    weak = replace(Options(), jetstream=replace(JS, sync=SyncMode.NEVER))
    assert start_warnings(Options()) == []
    assert 'sync is "never"' in start_warnings(weak)[0]
    plain = options("authorization { users: [{user: a, pass: b}] }")
    assert start_warnings(plain) == ["Plaintext passwords detected, use nkeys or bcrypt"]
    hashed = options("authorization { users: [{user: a, pass: $2a$11$" + "x" * 53 + "}] }")
    assert start_warnings(hashed) == []
    assert hashed.auth.users == (UserOptions(name="a", password="$2a$11$" + "x" * 53),)
