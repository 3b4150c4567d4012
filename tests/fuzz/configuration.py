"""The configuration: understood, or refused with ConfigError that names the place."""

import random

from jsctl.broker.conf.check import check, start_warnings
from jsctl.broker.conf.mapper import from_text
from jsctl.broker.errors import ConfigError
from tests.fuzz.target import Target

SAMPLES = (
    b"port: 4222\nserver_name: n1\nhttp: 8222\nmax_payload: 1MB\nping_interval: 10s\n",
    b"jetstream { store_dir: /data, max_mem: 1G, max_file: 10G, sync_interval: always }\n",
    b"cluster { name: C, listen: 127.0.0.1:6222, routes: [nats://a:b@h:6222], pool_size: 3 }\n",
    b"authorization { users: [ {user: a, password: b, permissions: { publish: { allow: [a.>],"
    b" deny: x }, subscribe: [b, \"c q\"], allow_responses: { max: 5, expires: 1m } } } ] }\n",
    b"accounts { A { users: [{user: a, password: b}], jetstream: { max_mem: 1M },"
    b" exports: [{stream: a.>}, {service: q, accounts: [B]}], mappings: { m: [{dest: n, weight: 50%"
    b"}] } }, B { imports: [{stream: {account: A, subject: a.>}, prefix: p}] } }\n",
    b"tls { cert_file: c.pem, key_file: k.pem, verify: true, timeout: 2 }\n# comment\n",
    b"X = 5\nport: $X\nlame_duck_duration: 30s\nsystem_account: SYS\nlog_file: \"a\\tb\\x41\"\n",
    b"include 'other.conf'\nserver_tags: [a, b:c]\ndebug: yes\ntrace: off\nmax_connections: 64K\n",
    b"websocket { port: 1 }\nleafnodes { remotes: [] }\nblock: (\nany text\n)\n",
)  # fmt: skip


class Configuration(Target):
    """The grammar, the table of options, and the checks that follow."""

    name = "configuration"
    words = (
        b"{", b"}", b"[", b"]", b":", b"=", b",", b"\n", b'"', b"'", b"(", b")", b"#", b"//", b"$X",
        b"include ", b"users", b"nkey: ", b"UAAA", b"1s", b"9" * 5000, b"1e999", b"\\x", b"\\u",
        b"{" * 1500, b"[" * 1500, b"0.0", b"-1", b"2026-13-45T99:99:99Z", b"\xed\xa0\x80", b"50%",
        b"jetstream: ", b"accounts: ", b"permissions: ", b"\x00", b"9" * 100 + b".5h",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return list(SAMPLES)

    def run(self, data: bytes, rng: random.Random) -> None:
        text = data.decode("utf-8", "replace" if rng.random() < 0.8 else "surrogateescape")
        try:
            loaded = from_text(text, "file", {"X": "5"}, _other)
        except ConfigError as error:
            assert str(error), "a refusal says why"
            return
        for mistake in check(loaded.options):
            assert str(mistake)
        start_warnings(loaded.options)


def _other(path: str) -> str:
    if len(path) % 2:
        raise ConfigError("no such file", place=path)
    return "host: localhost\n"
