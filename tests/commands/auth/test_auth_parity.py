"""`jsctl auth` and `nats auth`, the same words to each: on stores of their own, then on one."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.support.real_cli import Answer, beside, differences, nats, needs_nats

Run = Callable[..., Result]
pytestmark = [needs_nats, pytest.mark.processes]

MAKING = (
    "auth operator list",
    "auth operator info",
    "auth operator add",
    "auth operator add OP --service nats://x:4222 --tags One --tags two",
    "auth operator add OP",
    "auth operator add BAD --service http://x:4222",
    "auth operator add BAD --account-server foo",
    "auth operator add PLAIN --no-signing-key",
    "auth operator list",
    "auth operator ls --names",
    "auth operator info",
    "auth operator select OP",
    "auth operator info",
    "auth operator edit --account-server https://host/jwt/v1 --no-tags one --tags three",
    "auth operator edit --service nats://u:p@x:4222",
    "auth operator keys list",
    "auth operator keys add",
    "auth operator keys rm",
    "auth operator keys rm OP nokey -f",
    "auth operator keys rm OP nokey",
    "auth operator import /nope",
    "auth account add",
    "auth account add APP --defaults --tags x",
    "auth account add APP --defaults",
    "auth account add NEW",
    "auth account add JS --jetstream --js-disk 1G --js-memory 1M --js-disk-stream 5MB"
    " --js-streams 4 --js-consumers 5 --js-max-pending 100 --js-stream-size-required --bearer"
    " --connections 10 --subscriptions 20 --payload 1K --exports 3 --imports 4 --leafnodes 5"
    " --defaults --js-cluster-traffic owner",
    "auth account add U --jetstream --js-disk=-1 --js-memory=-1 --defaults",
    "auth account ls",
    "auth account ls --names",
    "auth account ls OP",
    "auth account info APP",
    "auth account info JS",
    "auth account info U",
    "auth account info SYSTEM",
    "auth account info",
    "auth account add X --js-cluster-traffic nobody",
    "auth account edit APP --connections 7 --bearer --tags y",
    "auth account edit APP --no-bearer",
    "auth account edit U --jetstream --js-streams 3",
    "auth account push APP --server nats://127.0.0.1:1",
    "auth account imports ls APP",
    "auth account imports info x APP",
    "auth account exports ls APP",
    "auth account exports info x APP",
    "auth account exports info --operator OP",
    "auth account exports add orders 'orders.>' APP --description 'All of them' --url http://x/y",
    "auth account exports add svc 'help.*' APP --service --advertise --token-position 2",
    "auth account exports add bad 'orders.new' APP",
    "auth account exports add bad 'a b' APP",
    "auth account exports add bad other APP --token-position 1",
    "auth account exports add '' other APP",
    "auth account exports ls APP",
    "auth account exports info orders.> APP",
    "auth account exports info help.* APP",
    "auth account exports info none APP",
    "auth account exports edit orders.> APP --description New --advertise",
    "auth account exports edit none APP --description New",
    "auth account exports rm none APP -f",
    "auth account exports rm help.* APP",
    "auth account exports rm help.* APP -f",
    "auth account imports add orders 'orders.>' JS --source APP --local 'in.>'",
    "auth account imports add orders 'orders.>' JS --source APP --local 'in'",
    "auth account imports add help help.me JS --source APP --service --share",
    "auth account imports add help help.me JS --source APP --service",
    "auth account imports add stream s JS --source APP --share",
    "auth account imports ls JS",
    "auth account imports info in.> JS",
    "auth account imports info help.me JS",
    "auth account imports info orders.> JS",
    "auth account imports edit in.> JS --local 'out.>'",
    "auth account imports edit help.me JS --traceable",
    "auth account imports edit none JS",
    "auth account imports rm help.me JS",
    "auth account imports rm help.me JS -f",
    "auth account imports rm out.> JS -f",
    "auth account imports rm out.> JS -f",
    "auth account imports ls JS",
    "auth account keys ls APP",
    "auth account keys info APP x",
    "auth account keys add APP",
    "auth account keys add APP reader --payload 5K --subscriptions 10 --bearer"
    " --locale Europe/Berlin --connection nats --connection ws --pub-allow 'a.>' --pub-deny a.b"
    " --sub-allow 'b.* q' --sub-deny c --description 'reads'",
    "auth account keys add APP broken --connection tcp",
    "auth account keys add APP broken --pub-allow 'a b'",
    "auth account keys add APP --unscoped",
    "auth account keys info APP reader",
    "auth account keys rm APP --key reader",
    "auth account mappings ls APP",
    "auth account mappings info APP",
    "auth account mappings rm APP",
    "auth account mappings add APP",
    "auth account mappings add APP a b 20",
    "auth account mappings add APP a b 20",
    "auth account mappings add APP a c 90",
    "auth account mappings add APP a c 30 east",
    "auth account mappings ls APP",
    "auth account mappings info APP a",
    "auth account mappings rm APP a",
    "auth user ls APP",
    "auth user info bob APP",
    "auth user add bob",
    "auth user add bob APP",
    "auth user add bob APP --defaults --tags T",
    "auth user add bob APP --defaults",
    "auth user add eve APP --defaults --pub-allow 'e.>' --pub-allow f --sub-deny g --bearer"
    " --locale UTC --payload 12 --data 13 --subscriptions 14",
    "auth user add sam APP --key reader --defaults",
    "auth user add tim APP --key nokey --defaults",
    "auth user ls APP",
    "auth user ls APP --names",
    "auth user ls",
    "auth user info bob APP",
    "auth user info eve APP",
    "auth user info sam APP",
    "auth user info none APP",
    "auth user edit none APP",
    "auth user rm none APP -f",
    "auth user rm eve APP",
    "auth user rm eve APP -f --revoke",
    "auth user ls APP",
    "auth account info APP",
    "auth user credential {files}/bob.creds bob APP",
    "auth user credential {files}/bob.creds bob APP",
    "auth user credential {files}/bob.creds bob APP -f --expire 1h",
    "auth nkey gen user",
    "auth nkey gen account --public",
    "auth nkey gen other",
    "auth nkey gen curve --output {files}/curve.nk",
    "auth nkey show {files}/none",
    "auth nkey show {files}/curve.nk",
    "auth nkey sign {files}/bob.creds {files}/curve.nk",
    "auth nkey gen operator --output {files}/op.nk --public",
    "auth nkey show {files}/op.nk",
    "auth operator backup OP {files}/plain.json --key {files}/op.nk",
    "auth operator backup OP {files}/sealed.json --key {files}/curve.nk",
    "auth operator restore OP {files}/sealed.json --key {files}/curve.nk",
)
"""Each of these is done to a store of nats by nats, and to one of jsctl by jsctl."""

EXPECTED = frozenset(
    {
        "auth user ls APP",
        "auth user add tim APP --key nokey --defaults",
        "auth account keys add APP broken --pub-allow 'a b'",
        "auth account keys info APP x",
        "auth account mappings add APP a c 90",
    }
)
"""Where they differ on purpose; docs/differences.md says why."""


def test_the_same_words_do_the_same(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = beside(MAKING, cli, tmp_path, monkeypatch)
    told = differences([pair for pair in pairs if pair[0] not in EXPECTED])
    assert not told, told


SHOWING = (
    "auth operator list",
    "auth operator info OP",
    "auth operator info OP -j",
    "auth operator keys list OP",
    "auth account ls OP",
    "auth account info APP",
    "auth account info APP -j",
    "auth account info SYSTEM",
    "auth account keys ls APP",
    "auth account keys info APP reader",
    "auth account exports ls APP",
    "auth account imports ls SYSTEM",
    "auth account mappings ls APP",
    "auth user ls APP --names",
    "auth user info bob APP",
    "auth user info sam APP",
    "auth user info bob APP -j",
    "jwt decode {operator}",
    "jwt decode {account}",
    "jwt decode {user}",
    "jwt decode {user} -j",
    "jwt decode {account} -j",
    "jwt decode {operator} -j",
    "jwt decode nothing",
    "jwt decode {mark}",
)
"""What both tools show of the same store."""

STEPS = (
    "auth operator add OP",
    "auth account add APP --jetstream --js-disk 1G --js-memory 1M --defaults",
    "auth account keys add APP reader --sub-allow a --description words --payload 10",
    "auth account keys add APP --unscoped",
    "auth user add bob APP --defaults --pub-allow 'a<b>&.>' --tags one",
    "auth user add sam APP --key reader --defaults",
    "auth account exports add all 'all.>' APP --description 'äöü <&>' --advertise",
    "auth account imports add all 'all.>' SYSTEM --source APP --local 'of.app.>'",
    "auth account mappings add APP in out 30",
    "auth account edit APP --connections 12 --jetstream --js-disk 1G --js-memory 1M",
    "auth operator edit OP --service nats://x:4222 --account-server nats://y:4222",
)


def document(text: str) -> object:
    """What `-j` prints; nats has signing keys in any order."""

    def settled(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: sorted(map(str, item)) if key == "signingKeys" and item else settled(item)
                for key, item in value.items()
            }
        return [settled(item) for item in value] if isinstance(value, list) else value

    return settled(json.loads(text))


@pytest.mark.parametrize("first", ["nats", "jsctl"])
def test_both_tools_work_on_one_store_in_turn(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for at, line in enumerate(STEPS):
        by_nats = (at % 2 == 0) == (first == "nats")
        words = shlex.split(line)
        done: Answer | Result = nats(*words) if by_nats else cli(*words)
        assert done.code == 0, (line, done.err)
    stores = tmp_path / "data" / "nats" / "nsc" / "stores" / "OP"
    places = {
        "operator": str(stores / "OP.jwt"),
        "account": str(stores / "accounts" / "APP" / "APP.jwt"),
        "user": str(stores / "accounts" / "APP" / "users" / "bob.jwt"),
        "mark": str(stores / ".nsc"),
    }
    pairs: list[tuple[str, Answer, Answer]] = []
    for line in SHOWING:
        words = shlex.split(line.format(**places))
        ours = cli(*words)
        theirs = nats(*words)
        if line.endswith("-j"):  # the same document; they escape `<`, `>` and `&` in it
            assert (theirs.code, document(theirs.out)) == (ours.code, document(ours.out)), line
        else:
            pairs.append((line, theirs, Answer(ours.code, ours.out, ours.err)))
    told = differences(pairs)
    assert not told, told
    assert cli("auth", "user", "rm", "bob", "APP", "-f").code == 0
    assert nats("auth", "account", "keys", "rm", "APP", "--key", "reader", "-f").code == 0
    assert cli("auth", "user", "ls", "APP", "--names").out == "sam\n"
    left = {path.stem[0] for path in (tmp_path / "data").rglob("*.nk")}
    assert left == {"O", "A", "U"}
    modes = {path.stat().st_mode & 0o77 for path in (tmp_path / "data").rglob("*")}
    assert modes == {0}


@pytest.mark.parametrize("maker", ["nats", "jsctl"])
@pytest.mark.parametrize("sealed", [False, True])
def test_a_backup_of_one_is_restored_by_the_other(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: str, sealed: bool
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "first"))
    for line in STEPS[:6]:
        assert cli(*shlex.split(line)).code == 0
    before = document(cli("auth", "operator", "info", "OP", "-j").out)
    key, target = tmp_path / "curve.nk", tmp_path / "backup"
    assert cli("auth", "nkey", "gen", "curve", "--output", str(key)).code == 0
    extra = ("--key", str(key)) if sealed else ()
    programs: dict[str, Callable[..., Answer | Result]] = {"nats": nats, "jsctl": cli}
    write, read = (programs[maker], programs["jsctl" if maker == "nats" else "nats"])
    assert write("auth", "operator", "backup", "OP", str(target), *extra).code == 0
    assert target.stat().st_mode & 0o777 == 0o600
    assert (b"SO" in target.read_bytes() and not sealed) or sealed
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "second"))
    restored = read("auth", "operator", "restore", "OP", str(target), *extra)
    assert restored.code == 0, restored.err
    assert document(nats("auth", "operator", "info", "OP", "-j").out) == before
    assert document(cli("auth", "operator", "info", "OP", "-j").out) == before


def test_what_one_seals_and_signs_the_other_opens_and_verifies(cli: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"words \x00\xff")
    publics: dict[str, str] = {}
    for name, kind in (("a", "curve"), ("b", "x25519"), ("u", "user")):
        out = cli("auth", "nkey", "gen", kind, "--public").out.split()
        (tmp_path / name).write_text(out[0] + "\n")
        publics[name] = out[1]
    a, b, u = (str(tmp_path / name) for name in "abu")
    sealed = str(tmp_path / "sealed")
    ways: tuple[tuple[Callable[..., Answer | Result], Callable[..., Answer | Result]], ...]
    ways = ((nats, cli), (cli, nats))
    for seal, unseal in ways:
        made = seal("auth", "nkey", "seal", str(data), a, publics["b"], "--output", sealed)
        assert made.code == 0
        opened = str(tmp_path / "opened")
        done = unseal("auth", "nkey", "unseal", sealed, b, publics["a"], "--output", opened)
        assert done.code == 0, done.err
        assert Path(opened).read_bytes() == data.read_bytes()
        raw = seal(
            "auth", "nkey", "enc", str(data), a, publics["b"], "--no-b64", "--output", sealed
        )
        assert raw.code == 0
        assert unseal("auth", "nkey", "dec", sealed, b, publics["a"], "--no-b64").code == 0
        signature = tmp_path / "signature"
        signature.write_text(seal("auth", "nkey", "sign", str(data), u).out.strip())
        words = ("auth", "nkey", "verify", str(data), str(signature))
        assert unseal(*words, u).out == "Verified OK\n"
        assert unseal(*words, str(tmp_path / "other")).code == 1
        assert unseal(*words, a).code == 1
    assert cli("auth", "nkey", "sign", str(data), u).out == nats(
        "auth", "nkey", "sign", str(data), u
    ).out  # fmt: skip
