"""What the user gave to connect with is used, or refused in one line; never ignored."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nkeys  # type: ignore[import-untyped] # has no types
import pytest

from jsctl.testing import Broker, RealServer
from tests.commands.conftest import KINDS, Run
from tests.support.socks import socks_proxy

pytestmark = pytest.mark.processes
GIVEN = "cannot be used together: give one of --user, --creds, --nkey, and --jwt with --seed"


@pytest.fixture(scope="module", params=list(KINDS))
def open_server(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A server that lets everybody in: what is ignored would succeed."""
    with KINDS[str(request.param)]() as running:
        yield running


def seed(kind: int = nkeys.PREFIX_BYTE_USER) -> str:
    """A new one."""
    return bytes(nkeys.encode_seed(os.urandom(32), kind)).decode()


def public(of: str) -> str:
    """The public key of a seed."""
    return str(nkeys.from_seed(bytearray(of.encode())).public_key.decode())


def token(subject: str) -> str:
    """A JWT for somebody, with a signature that nobody checks here."""
    claims = base64.urlsafe_b64encode(json.dumps({"sub": subject}).encode()).rstrip(b"=")
    return f"e30.{claims.decode()}.AAAA"


def creds(jwt: str, secret: str) -> str:
    """A credentials file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{secret}\n------END USER NKEY SEED------\n"
    )


class Files:
    """Good and bad files, by their names."""

    def __init__(self, directory: Path) -> None:
        user, other = seed(), seed()
        self.user, self.other, self.jwt = user, other, token(public(user))
        contents = {
            "junk": "junk\n",
            "good.creds": creds(self.jwt, user),
            "foreign.creds": creds(self.jwt, other),
            "half.creds": creds(self.jwt, user).partition("-----BEGIN USER")[0],
            "account.nk": seed(nkeys.PREFIX_BYTE_ACCOUNT),
            "user.nk": user,
        }
        self.directory = directory
        for name, content in contents.items():
            (directory / name).write_text(content)
        (directory / "binary").write_bytes(b"\xff\xfe\x00")

    def __call__(self, text: str) -> str:
        """`{dir}` and the keys filled in."""
        return text.format(dir=self.directory, user=self.user, other=self.other, jwt=self.jwt)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


NO_FILE = "No such file or directory"
REFUSED = [
    ("--creds {dir}/none", "cannot read credentials file {dir}/none: " + NO_FILE),
    ("--creds {dir}", "cannot read credentials file {dir}: Is a directory"),
    ("--creds {dir}/junk", "credentials file {dir}/junk has no user JWT: --creds takes the file"),
    ("--creds {dir}/binary", "credentials file {dir}/binary is not text"),
    ("--creds {dir}/half.creds", "credentials file {dir}/half.creds has no seed: "),
    (
        "--creds {dir}/foreign.creds",
        "credentials file {dir}/foreign.creds: the seed does not belong to the user JWT: ",
    ),
    ("--creds op://a/b", "cannot read credentials op://a/b: op read failed: "),
    ("--creds env://NOBODY_SET_IT", "cannot read credentials env://NOBODY_SET_IT: the environment"),
    ("--creds nsc://a/b", "invalid nsc url nsc://a/b: expecting nsc://Operator/Account/User"),
    ("--creds nsc://a/b/c", "unknown operator: a"),
    ("--creds nsc://a/../c", "invalid account name '..': "),
    ("--nkey {dir}/none", "cannot read nkey file {dir}/none: " + NO_FILE),
    ("--nkey {dir}/junk", "nkey file {dir}/junk: not a usable seed: a seed of a user starts"),
    ("--nkey {dir}/account.nk", "nkey file {dir}/account.nk: not the seed of a user: "),
    ("--nkey {dir}/user.nk", "nats: nkeys not supported by the server"),
    ("--jwt {jwt}", "a jwt was given without a seed: add --seed"),
    ("--seed {user}", "a seed was given without a jwt: add --jwt"),
    ("--jwt {jwt} --seed {other}", "--seed: the seed does not belong to the user JWT: "),
    ("--jwt {jwt} --seed SUJUNK", "--seed: not a usable seed: "),
    ("--jwt abc --seed {user}", "the user JWT cannot be read: --jwt takes the token itself"),
    ("--jwt {dir}/good.creds --seed {user}", "the user JWT cannot be read: "),
    ("--password x", "a password was given without a user: add --user"),
    ("--user a --password b --token c", "user and token cannot be used together: "),
    ("--user a --creds {dir}/good.creds", "user and creds " + GIVEN),
    ("--nkey {dir}/user.nk --creds {dir}/good.creds", "creds and nkey " + GIVEN),
    ("--tlsca {dir}/none", "path '{dir}/none' does not exist"),
    ("--tlsca {dir}/junk", "{dir}/junk holds no certificate: "),
    ("--tlscert {dir}/none", "path '{dir}/none' does not exist"),
    ("--tlscert {dir}/junk --tlskey {dir}/none", "path '{dir}/none' does not exist"),
    ("--tlscert {dir}/junk", "cannot use the TLS files: {dir}/junk and no key are no certificate"),
    ("--tlskey {dir}/junk", "a TLS key was given without a certificate: add --tlscert"),
    ("--tlsfirst", "nats: tls error: "),
    ("--inbox-prefix a.>", 'nats: invalid custom prefix "a.>"'),
    ("--inbox-prefix a.", 'nats: invalid custom prefix "a."'),
    ("--socks-proxy 127.0.0.1:1", "'127.0.0.1:1' is not the URL of a SOCKS proxy"),
    ("--socks-proxy http://127.0.0.1:1", "'http://127.0.0.1:1' is not the URL of a SOCKS proxy"),
    ("--socks-proxy socks5://127.0.0.1:1", "nats: no servers available for connection"),
    ("-s http://127.0.0.1:1", "'http://127.0.0.1:1' is not the URL of a server"),
    ("-s nats://u:secret@127.0.0.1:xx", "'nats://***@127.0.0.1:xx' is not the URL of a server"),
    ("-s nats://:4222", "'nats://:4222' is not the URL of a server"),
    ("--timeout -1s", "--timeout must be positive, got -1s"),
]


@pytest.mark.parametrize(("flags", "line"), REFUSED, ids=lambda value: value[:40])
def test_what_cannot_be_used_is_refused(
    open_server: Broker, cli: Run, files: Files, flags: str, line: str
) -> None:
    at = () if flags.startswith("-s ") else ("-s", open_server.url)
    done = cli(*at, *files(flags).split(), "pub", "a", "x")
    assert done.code == 1
    assert done.err.startswith(f"jsctl: error: {files(line)}"), done.err
    assert done.err.count("\n") <= 2  # the error, and a hint
    assert files.user not in done.err and "secret" not in done.err


def test_tls_is_used_or_there_is_no_connection(open_server: Broker, cli: Run) -> None:
    done = cli("-s", open_server.url.replace("nats:", "tls:"), "pub", "a", "x")
    assert (done.code, done.err.splitlines(keepends=True)[0]) == (
        1,
        "jsctl: error: nats: secure connection not available\n",
    )


def test_good_ones_are_used(open_server: Broker, cli: Run, files: Files) -> None:
    (embedded,) = (base64.b64encode(Path(files("{dir}/good.creds")).read_bytes()).decode(),)
    for flags in (
        "--creds {dir}/good.creds",
        "--creds file://{dir}/good.creds",
        f"--creds data:;base64,{embedded}",
        "--jwt {jwt} --seed {user}",
        "--token a",
    ):
        done = cli("-s", open_server.url, *files(flags).split(), "pub", "a", "x")
        assert done.code == 0, done.err


def test_whom_a_server_knows(cli: Run, files: Files) -> None:
    user = "{user: 'a b', password: 'p@ss:w/rd'}"
    config = f"authorization {{ users: [{user}, {{nkey: {public(files.user)}}}] }}"
    with RealServer(config=config) as broker:
        url = broker.url.replace("//", "//a%20b:p%40ss%3Aw%2Frd@")
        for words in (
            ("-s", url),
            ("-s", url, "--user", "wrong", "--password", "wrong"),
            ("-s", broker.url, "--user", "a b", "--password", "p@ss:w/rd"),
            ("-s", broker.url, "--nkey", files("{dir}/user.nk")),
        ):
            done = cli(*words, "pub", "a", "x")
            assert done.code == 0, (words, done.err)
        (files.directory / "user.nk").write_text(files.other)
        for flags in ("--nkey {dir}/user.nk", "--token x", "--creds {dir}/good.creds", ""):
            done = cli("-s", broker.url, *files(flags).split(), "pub", "a", "x")
            assert (done.code, done.err.splitlines(keepends=True)[0]) == (
                1,
                "jsctl: error: nats: Authorization Violation\n",
            )


def test_the_nearest_login_is_the_only_one(
    open_server: Broker, cli: Run, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags beat the environment, which beats the context: as a whole, not part by part."""
    add = ("context", "add", "c", "-s", open_server.url, "--user", "u", "--password", "p")
    assert cli(*add, "--select").code == 0
    missing = files("{dir}/none")
    line = f"jsctl: error: cannot read credentials file {missing}: {NO_FILE}\n"
    assert cli("--creds", missing, "pub", "a", "x").err.splitlines(keepends=True)[0] == line
    assert cli("--password", "other", "pub", "a", "x").code == 0
    monkeypatch.setenv("NATS_CREDS", missing)
    assert cli("pub", "a", "x").err.splitlines(keepends=True)[0] == line
    assert cli("--user", "u", "--password", "p", "pub", "a", "x").code == 0
    monkeypatch.setenv("NATS_TOKEN", "t")
    assert cli("--creds", files("{dir}/good.creds"), "pub", "a", "x").code == 0
    monkeypatch.delenv("NATS_TOKEN")
    monkeypatch.delenv("NATS_CREDS")
    monkeypatch.setenv("NATS_CA", missing)
    assert (
        cli("pub", "a", "x").err.splitlines(keepends=True)[0]
        == f"jsctl: error: path '{missing}' does not exist\n"
    )


BROKEN = [
    ('{"user": 5}', '"user" must be a text'),
    ('{"tls_first": "yes"}', '"tls_first" must be true or false'),
    ("[]", "is not a JSON object"),
    ("{", "is not JSON: "),
    ('{"creds": "/none"}', "cannot read credentials file /none: " + NO_FILE),
    ('{"nkey": "/none"}', "cannot read nkey file /none: " + NO_FILE),
    ('{"user_jwt": "a"}', "a jwt was given without a seed"),
]


@pytest.mark.parametrize(("content", "line"), BROKEN)
def test_broken_contexts(cli: Run, tmp_path: Path, content: str, line: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(content)
    done = cli("--context", str(path), "pub", "a", "x")
    assert done.code == 1
    assert done.err.startswith("jsctl: error: ") and line in done.err
    assert done.err.count("\n") <= 2  # the error, and a hint


def test_a_context_file_that_is_not_text(cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(b"\xff\xfe")
    assert "is not JSON" in cli("--context", str(path), "pub", "a", "x").err


def test_a_socks_proxy_stands_between(open_server: Broker, cli: Run) -> None:
    with socks_proxy() as proxy:
        through = ("--socks-proxy", proxy.url)
        done = cli("-s", f"nats://localhost:{open_server.port}", *through, "pub", "a", "x")
        assert done.code == 0, done.err
        assert proxy.targets == [("localhost", open_server.port)]  # names are looked up there
        done = cli("-s", "nats://127.0.0.1:1", *through, "pub", "a", "x")
        assert (
            done.err.splitlines(keepends=True)[0]
            == "jsctl: error: nats: no servers available for connection\n"
        )
        assert ("127.0.0.1", 1) in proxy.targets


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem, and pairs signed by it: one.pem with one.key, two.pem with two.key."""
    path = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=path, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl("req", "-x509", *new, *usage, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    (path / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("one", "two"):
        openssl("req", *new, "-keyout", f"{name}.key", "-out", "req.pem", "-subj", f"/CN={name}")
        by = ("-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        openssl("x509", "-req", *by, "-extfile", "ext", "-out", f"{name}.pem")
    return path


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("first", [False, True], ids=["greeting first", "tls first"])
def test_tls_is_checked_both_ways(kind: str, first: bool, cli: Run, authority: Path) -> None:
    lines = f'cert_file: "{authority}/one.pem", key_file: "{authority}/one.key"'
    lines += f', ca_file: "{authority}/ca.pem", verify: true'
    lines += ", handshake_first: true" if first else ""
    flags = ("--tlsfirst",) if first else ()
    ca = ("--tlsca", f"{authority}/ca.pem")
    own = ("--tlscert", f"{authority}/two.pem", "--tlskey", f"{authority}/two.key")
    with KINDS[kind](config=f"tls {{ {lines} }}") as broker:

        def publish(*words: str) -> str:
            done = cli("-s", broker.url, *words, *flags, "pub", "a", "x")
            assert done.code == (0 if words == (*ca, *own) else 1), done.err
            assert done.err.count("\n") <= 2  # the error, and a hint
            return done.err

        publish(*ca, *own)
        assert "nats: tls error: " in publish(*own)
        publish(*ca)
        mixed = ("--tlscert", f"{authority}/two.pem", "--tlskey", f"{authority}/one.key")
        assert "do not belong together" in publish(*ca, *mixed)


@pytest.mark.parametrize("scheme", ["", "nats://"])
@pytest.mark.parametrize(
    "words",
    [
        ("pub", "a", "b"),
        ("stream", "ls"),
        ("server", "list"),
        ("rtt",),
        ("server", "check", "connection"),
        ("dashboard", "--once"),
        ("pipeline", "doctor"),
    ],
)
def test_nobody_reads_a_password_of_a_url(cli: Run, scheme: str, words: tuple[str, ...]) -> None:
    """Nowhere on the screen, also where nothing listens."""
    found = cli("-s", f"{scheme}app:s3cret@127.0.0.1:1", "--timeout", "1s", *words)
    assert "s3cret" not in found.out + found.err
