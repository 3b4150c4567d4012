"""`jsctl backup` and `nats backup`: each reads, edits and restores what the other wrote."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.backups.archive import ArchiveReader, ConsumerEntry, MessageEntry
from jsctl.cli import main
from tests.commands.conftest import Result
from tests.support.nats_process import real_server
from tests.support.real_cli import Answer, differences, nats, needs_nats

Run = Callable[..., Result]
pytestmark = [needs_nats, pytest.mark.processes]

READING = (
    "backup info {orders} --no-progress",
    "backup info {orders} --no-progress --subjects",
    "backup info {bucket} --no-progress",
    "backup info {edited} --no-progress",
    "backup info {empty} --no-progress",
    "backup info /nope --no-progress",
    "backup validate {half} --no-progress",
    "backup validate {two} --no-progress",
    "backup info {orders} -j",
    "backup info {edited} -j",
    "backup restore stream /nope",
    "backup restore account /nope",
)
EDITS = (
    "--subject orders.1 --subject orders.2",
    "--exclude-subject 'orders.*'",
    "--first-seq 3 --last-seq 9",
    "--first-seq 9 --last-seq 3",
    "--header N",
    "--header N:4",
    "--exclude-header N",
    "--payload-match 'body [12]$' --exclude-payload-match 2",
    "--payload-match '['",
    "--after 2h",
    "--before 2h",
    "--after 2020-01-01T00:00:00Z --before 2021-01-01T00:00:00Z",
    "--after yesterday",
    "--last-per-subject 2",
    "--last-per-subject 0",
    "--renumber --subject orders.3",
    "--kv-compact",
    "--subject 'a..b'",
    "--dry-run --last-per-subject 1",
    "--exclude-header 'a b'",
)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a stream and a bucket."""
    with real_server(tmp_path_factory.mktemp("server")) as url:

        def does(*words: str) -> None:
            assert main(["-s", url, *words]) == 0, words

        does("stream", "add", "ORDERS", "--subjects", "orders.>", "--defaults")
        for at in range(12):
            does("pub", f"orders.{at % 4}", f"body {at % 4}", "-H", f"N:{at % 5}", "-J", "-q")
        does("pub", "orders.large", "x" * 100_000, "-J", "-q")
        does("consumer", "add", "ORDERS", "C", "--pull", "--defaults")
        does("stream", "add", "EMPTY", "--subjects", "empty", "--defaults")
        for words in ("add B --history 5", "put B a 1", "put B a 2", "put B b 3", "del B b -f"):
            assert nats("-s", url, "kv", *words.split()).code == 0
        yield url


@pytest.fixture(scope="module")
def made(real: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Backups by nats, and broken ones."""
    folder = tmp_path_factory.mktemp("backups")
    places = {
        name: folder / name for name in ("orders", "bucket", "empty", "edited", "half", "two")
    }
    for name, stream in (("orders", "ORDERS"), ("bucket", "KV_B"), ("empty", "EMPTY")):
        words = ("backup", "stream", stream, str(places[name]), "--no-progress")
        assert nats("-s", real, *words).code == 0
    flags = ("--header", "N:1")
    assert nats("backup", "edit", str(places["orders"]), str(places["edited"]), *flags).code == 0
    for name in ("half", "two"):
        places[name].mkdir()
        for path in places["orders"].iterdir():
            (places[name] / path.name).write_bytes(path.read_bytes())
    archive = places["half"] / "stream.arc.s2"
    archive.write_bytes(archive.read_bytes()[:10])
    (places["two"] / "stream.tar.s2").write_bytes(b"")
    return places


def test_what_is_in_a_backup_is_told_the_same(cli: Run, made: dict[str, Path]) -> None:
    pairs: list[tuple[str, Answer, Answer]] = []
    for line in READING:
        words = shlex.split(line.format(**made))
        ours = cli(*words)
        pairs.append((line, nats(*words), Answer(ours.code, ours.out, ours.err)))
    told = differences([pair for pair in pairs if "{half}" not in pair[0]])
    assert not told, told
    broken = next(pair for pair in pairs if "{half}" in pair[0])
    assert broken[1].code == broken[2].code == 1
    assert "half/stream.arc.s2: " in broken[2].err


@pytest.mark.parametrize("flags", EDITS)
def test_edits_are_the_same(cli: Run, made: dict[str, Path], tmp_path: Path, flags: str) -> None:
    source = made["bucket" if "kv-compact" in flags else "orders"]
    answers: list[Answer] = []
    for name in ("nats", "jsctl"):
        home = tmp_path / name[:4]  # as long for both: it stands in a table
        target = home / "copy"
        words = ("backup", "edit", str(source), str(target), "--no-progress", *shlex.split(flags))
        done: Answer | Result = nats(*words) if name == "nats" else cli(*words)
        out, err = (text.replace(str(home), "H") for text in (done.out, done.err))
        answers.append(Answer(done.code, out, err))
    theirs, ours = answers
    assert (theirs.code, theirs.out) == (ours.code, ours.out.replace("jsctl:", "nats:"))
    copies = [tmp_path / name / "copy" for name in ("nats", "jsct")]
    assert copies[0].exists() == copies[1].exists() == (theirs.code == 0 and "dry" not in flags)
    if not copies[0].exists():
        assert not list(tmp_path.glob("*/.copy*"))
        return
    infos = []
    for copy in copies:
        found = json.loads(nats("backup", "info", str(copy), "-j", "--subjects").out)
        edit = found.pop("edit")
        infos.append((found, edit["source_digest"], [one[:9] for one in edit["options"]]))
        by_us = json.loads(cli("backup", "info", str(copy), "-j", "--subjects").out)
        assert {**by_us, "edit": 0} == {**found, "edit": 0}
    assert infos[0] == infos[1]
    assert nats("backup", "validate", str(copies[1])).code == 0
    assert {path.stat().st_mode & 0o77 for path in copies[1].iterdir()} == {0}


@pytest.mark.parametrize("maker", ["nats", "jsctl"])
def test_what_one_backs_up_the_other_restores(
    cli: Run, real: str, tmp_path: Path, maker: str
) -> None:
    stream = f"S{maker}"
    assert cli("-s", real, "stream", "add", stream, "--subjects", stream, "--defaults").code == 0
    for body in ("one", "two", "x" * 200_000):
        assert cli("-s", real, "pub", stream, body, "-J", "-q").code == 0
    assert cli("-s", real, "consumer", "add", stream, "C", "--pull", "--defaults").code == 0
    programs: dict[str, Callable[..., Answer | Result]] = {"nats": nats, "jsctl": cli}
    write, read = programs[maker], programs["jsctl" if maker == "nats" else "nats"]
    before = [cli("-s", real, "stream", "get", stream, str(at), "-j").out for at in (1, 2, 3)]
    place = str(tmp_path / "b")
    assert write("-s", real, "backup", "stream", stream, place, "--no-progress").code == 0
    taken = read("-s", real, "backup", "restore", "stream", place, "--no-progress")
    assert (taken.code, f'Stream "{stream}" already exist' in taken.err) == (1, True)
    assert cli("-s", real, "stream", "rm", stream, "-f").code == 0
    done = read("-s", real, "backup", "restore", "stream", place, "--no-progress")
    assert done.code == 0, done.err
    after = [cli("-s", real, "stream", "get", stream, str(at), "-j").out for at in (1, 2, 3)]
    assert after == before
    assert cli("-s", real, "consumer", "ls", stream, "-n").out == "C\n"


@pytest.mark.parametrize("maker", ["nats", "jsctl"])
def test_whole_accounts(cli: Run, real: str, tmp_path: Path, maker: str) -> None:
    programs: dict[str, Callable[..., Answer | Result]] = {"nats": nats, "jsctl": cli}
    write, read = programs[maker], programs["jsctl" if maker == "nats" else "nats"]
    target = tmp_path / "all"
    assert write("-s", real, "backup", "account", str(target), "-f").code == 0
    names = cli("-s", real, "stream", "ls", "-n").out.split()
    assert sorted(path.name for path in target.iterdir()) == sorted(names)
    assert read("-s", real, "backup", "restore", "account", str(target)).code == 1
    for name in names:
        assert cli("-s", real, "stream", "rm", name, "-f").code == 0
    assert read("-s", real, "backup", "restore", "account", str(target)).code == 0
    assert sorted(cli("-s", real, "stream", "ls", "-n").out.split()) == sorted(names)


def test_the_old_words_still_work(cli: Run, real: str, tmp_path: Path) -> None:
    target = tmp_path / "all"
    done = cli("-s", real, "account", "snapshot", str(target), "-f")
    assert (done.code, "is deprecated" in done.err) == (0, True)
    done = cli("-s", real, "account", "restore", str(target))
    assert (done.code, "exists already" in done.err) == (1, True)
    assert cli("-s", real, "stream", "restore", str(target / "EMPTY")).code == 1
    assert cli("-s", real, "stream", "rm", "EMPTY", "-f").code == 0
    assert cli("-s", real, "stream", "restore", str(target / "EMPTY")).code == 0


def test_nothing_is_left_when_the_disk_is_full(
    cli: Run, made: dict[str, Path], tmp_path: Path
) -> None:
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
    try:
        code = main(
            ["backup", "edit", str(made["orders"]), str(tmp_path / "copy"), "--no-progress"]
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handled)
    assert code == 1
    assert not [path for path in tmp_path.iterdir() if "copy" in path.name]


def test_names_are_hidden_the_same_with_the_same_keys(
    cli: Run, real: str, made: dict[str, Path], tmp_path: Path
) -> None:
    """One secret leads to one backup; the keys of either are read by the other."""
    copies: list[Path] = []
    first = tmp_path / "0"
    flags = ("--no-progress", "--obfuscate")
    assert nats("backup", "edit", str(made["orders"]), str(first), *flags).code == 0
    keys = ("--obfuscation-key", f"{first}.keys.json")
    for name in ("nats", "jsctl"):
        home = tmp_path / name[:4]
        target = home / "copy"
        words = ("backup", "edit", str(made["orders"]), str(target), *flags, *keys)
        done: Answer | Result = nats(*words) if name == "nats" else cli(*words)
        assert done.code == 0, done.err
        copies.append(target)
        (tmp_path / f"{name}.out").write_text(done.out.replace(str(home), "H"))
    outs = [(tmp_path / f"{name}.out").read_text() for name in ("nats", "jsctl")]
    assert outs[0] == outs[1]
    theirs, ours = (entries(copy) for copy in copies)
    assert theirs == ours
    infos = [json.loads((copy / "backup.json").read_text()) for copy in copies]
    for info in infos:
        info["edit"].pop("version"), info["config"].pop("consumer_limits", None)
    assert infos[0] == infos[1]
    both = [json.loads(Path(f"{copy}.keys.json").read_text()) for copy in copies]
    assert both[0] == both[1]
    assert Path(f"{copies[1]}.keys.json").stat().st_mode & 0o77 == 0
    values = (*both[0]["map"], "KV_x", "unknown.token", infos[0]["config"]["subjects"][0])
    answers = [
        run("backup", "lookup", str(copies[0]) + ".keys.json", *values) for run in (nats, cli)
    ]
    assert (answers[0].code, answers[0].out) == (answers[1].code, answers[1].out)
    assert "orders.>" in answers[1].out.split()
    done = cli("-s", real, "backup", "restore", "stream", str(copies[1]), "--no-progress")
    assert done.code == 0, done.err
    name = infos[1]["config"]["name"]
    shown = cli("-s", real, "stream", "get", name, "1").out
    assert "body" not in shown and "orders" not in shown and "000000" in shown
    assert cli("-s", real, "stream", "rm", name, "-f").code == 0


def entries(directory: Path) -> list[object]:
    with (directory / "stream.arc.s2").open("rb") as file:
        found: list[object] = []
        for entry in ArchiveReader(file):
            if isinstance(entry, ConsumerEntry):
                found.append((entry.name, json.loads(entry.data)))
            elif isinstance(entry, MessageEntry):
                found.append(entry)
        return found


OBFUSCATED_WRONG = (
    "backup edit {orders} {target} --obfuscation-key {keys}",
    "backup edit {orders} {target} --obfuscate --obfuscation-key /nope",
    "backup edit {orders} {target} --obfuscate --obfuscation-key {bad}",
    "backup edit {orders} {target} --obfuscate --obfuscation-key {keys} --dry-run --no-progress",
    "backup lookup {bad} x",
    "backup lookup {keys}",
)


def test_key_files_that_are_none_are_refused(
    cli: Run, made: dict[str, Path], tmp_path: Path
) -> None:
    keys, bad = tmp_path / "k.json", tmp_path / "bad.json"
    assert cli("backup", "edit", str(made["orders"]), str(tmp_path / "k"), "--obfuscate").code == 0
    document = json.loads((tmp_path / "k.keys.json").read_text())
    keys.write_text(json.dumps(document))
    document["map"][next(iter(document["map"]))] = "another"
    bad.write_text(json.dumps(document))
    pairs: list[tuple[str, Answer, Answer]] = []
    for line in OBFUSCATED_WRONG:
        places = {"target": tmp_path / "t", "keys": keys, "bad": bad}
        words = shlex.split(line.format(**made, **places))
        ours = cli(*words)
        pairs.append((line, nats(*words), Answer(ours.code, ours.out, ours.err)))
    told = differences(pairs)
    assert not told, told
    again = cli("backup", "edit", str(made["orders"]), str(tmp_path / "k"), "--obfuscate")
    assert (again.code, "is not empty" in again.err) == (1, True)
    (tmp_path / "new.keys.json").write_text("{}")
    taken = cli("backup", "edit", str(made["orders"]), str(tmp_path / "new"), "--obfuscate")
    assert (taken.code, "key file" in taken.err, "already exists" in taken.err) == (1, True, True)
    assert not (tmp_path / "new").exists()
