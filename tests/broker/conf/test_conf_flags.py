"""The command line: Go's rules, nats-server's flags, and flags over files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.conf.flags import BY_NAME, UsageError, help_text, parse_flags
from jsctl.broker.conf.mapper import from_text
from jsctl.broker.conf.override import override
from jsctl.broker.conf.units import duration_ns, host_port, route_url, size_bytes
from jsctl.broker.errors import ConfigError
from jsctl.broker.options import Options, Url
from tests.support.quick import examples


def run(*words: str, config: str = "") -> Options:
    base = from_text(config, "x.conf", {}).options if config else Options()
    return override(base, parse_flags(words))


@pytest.mark.parametrize(
    "words",
    [
        ("-p", "-1", "-m", "8222", "-a", "127.0.0.1", "-js", "-sd=D"),
        ("--port", "-1", "--http_port=8222", "--addr=127.0.0.1", "--jetstream", "--store_dir", "D"),
        ("-port=-1", "-m=8222", "-net", "127.0.0.1", "-js=true", "-sd", "D"),
    ],
)
def test_shapes_that_mean_the_same(words: tuple[str, ...]) -> None:
    found = run(*words)
    assert (found.listen.host, found.listen.port) == ("127.0.0.1", -1)
    assert found.monitoring.port == 8222
    assert (found.jetstream.enabled, found.jetstream.store_dir) == (True, "D")


@pytest.mark.parametrize(
    ("words", "debug", "trace", "verbose"),
    [
        (("-D",), True, False, False),
        (("-V",), False, True, False),
        (("-DV",), True, True, False),
        (("-VV",), False, True, True),
        (("-DVV",), True, True, True),
        (("-D=false",), False, False, False),
    ],
)
def test_debug_and_trace(words: tuple[str, ...], debug: bool, trace: bool, verbose: bool) -> None:
    log = run(*words).log
    assert (log.debug, log.trace, log.trace_verbose) == (debug, trace, verbose)


def test_clusters() -> None:
    by_url = run("--cluster", "nats://u:p@127.0.0.1:-1", "--routes", "nats://a:1,b:2")
    assert (by_url.cluster.host, by_url.cluster.port) == ("127.0.0.1", -1)
    assert (by_url.cluster.user, by_url.cluster.password) == ("u", "p")
    assert by_url.cluster.routes == (Url("a", 1), Url("b", 2))
    by_listen = run("--cluster_listen=nats://[::1]:7222", "--cluster_name", "c")
    assert (by_listen.cluster.host, by_listen.cluster.port) == ("::1", 7222)
    assert by_listen.cluster.name == "c"
    by_name = run("--cluster", "c1")
    assert (by_name.cluster.name, by_name.cluster.port) == ("c1", 6222)
    off = run("--cluster", "", config="cluster { port: 1 }")
    assert not off.clustered


def test_flags_win_over_the_file() -> None:
    found = run("-p", "5", "--user", "u", "--pass", "p", "-n", "N", "-T=false",
                config="port: 4\nserver_name: M\nauthorization { token: t }")  # fmt: skip
    assert (found.listen.port, found.server_name, found.log.logtime) == (5, "N", False)
    assert (found.auth.user, found.auth.password, found.auth.token) == ("u", "p", "")


def test_tls_flags() -> None:
    tls = run("--tlsverify", "--tlscert", "c", "--tlskey=k", "--tlscacert", "a").tls
    assert tls is not None
    assert (tls.cert_file, tls.key_file, tls.ca_file, tls.verify) == ("c", "k", "a", True)
    with pytest.raises(ConfigError, match="TLS Server certificate must be present and valid"):
        run("--tls")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--foo",), "flag provided but not defined: -foo"),
        (("-p",), "flag needs an argument: -p"),
        (("-p", "abc"), 'invalid value "abc" for flag -p: parse error'),
        (("-p", "-+5"), 'invalid value "-+5" for flag -p: parse error'),
        (("-D=maybe",), 'invalid boolean value "maybe" for -D: parse error'),
        (("---p",), "bad flag syntax: ---p"),
    ],
)
def test_wrong_flags(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_flags(words)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "words", [("-p", "99999"), ("--routes", "x y"), ("--cluster", "http://a:1"),
              ("--cluster", "nats://u@a:1"), ("--user", "a", "--auth", "b")]
)  # fmt: skip
def test_values_of_no_use(words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        run(*words)


def test_parsing_stops_at_the_first_word() -> None:
    assert parse_flags(["-D", "version", "-V"]).words == ["version", "-V"]
    assert parse_flags(["--", "-V"]).words == ["-V"]


def test_the_help_names_every_flag() -> None:
    text = help_text("jsctl broker")
    for name in BY_NAME:
        assert f"-{name}" in text


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.sampled_from([f"-{n}" for n in BY_NAME] + ["1", "-1", "x", "=", "--", "-p=1"])))
def test_any_words_give_options_or_config_errors(words: list[str]) -> None:
    try:
        assert isinstance(run(*words), Options)
    except ConfigError as error:
        assert str(error)


def test_units() -> None:
    assert duration_ns("1h2m3.5s") == 3_723_500_000_000
    assert duration_ns("-2ms") == -2_000_000
    assert duration_ns("0") == 0
    assert [duration_ns(bad) for bad in ("", "1", "s", "1x", "1s2", "-", "9999999h")] == [None] * 7
    assert size_bytes("10MB") == size_bytes("10m") == 10 << 20
    assert size_bytes("1.5G") is None
    assert size_bytes("8388607T") == 8388607 << 40
    assert size_bytes("8388608T") is None, "more than servers can tell each other"
    assert host_port("[::1]:5") == ("::1", 5)
    assert host_port("::1:5") is None
    assert route_url("nats://h") is None
