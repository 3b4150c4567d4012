"""The configuration language: what it means, where errors are, and that real files agree."""

import subprocess
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.conf.digest import digest
from jsctl.broker.conf.parser import parse, read_file
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.errors import ConfigError
from jsctl.testing import find_real_server
from tests.support.quick import examples


def plain(node: ConfigNode) -> object:
    content = node.content
    if isinstance(content, dict):
        return {key: plain(value) for key, value in content.items()}
    if isinstance(content, list):
        return [plain(item) for item in content]
    return content


def read(text: str, **environment: str) -> object:
    return plain(parse(text, "x.conf", environment))


MEANINGS: list[tuple[str, object]] = [
    ("a: 1", {"a": 1}),
    ("a = 1", {"a": 1}),
    ("a 1", {"a": 1}),
    ("a\n1", {"a": 1}),
    ("{ a: 1 }", {"a": 1}),
    ('{"a": [1, 2.5, "x", true, {"b": -3}]}', {"a": [1, 2.5, "x", True, {"b": -3}]}),
    ("a: 1; b: 2, c: 3\nd: 4", {"a": 1, "b": 2, "c": 3, "d": 4}),
    ("a { b { c: d } }", {"a": {"b": {"c": "d"}}}),
    ("a {\n b: 1\n c: 2 }", {"a": {"b": 1, "c": 2}}),
    ("a [ x\n y\n ]", {"a": ["x", "y"]}),
    ("a [x, y,]", {"a": ["x", "y"]}),
    ("a: on\nb: NO\nc: 'on'", {"a": True, "b": False, "c": "on"}),
    ("a: 1k\nb: 1kb\nc: 1KiB\nd: 1m\ne: 64MB\nf: 1Gb", {
        "a": 1000, "b": 1024, "c": 1024, "d": 1_000_000, "e": 64 << 20, "f": 1 << 30}),
    ("a: -1\nb: -1k", {"a": -1, "b": -1000}),
    ("a: 10s\nb: 1.2.3.4\nc: 127.0.0.1:4222", {"a": "10s", "b": "1.2.3.4", "c": "127.0.0.1:4222"}),
    ("a: 1.5", {"a": 1.5}),
    ('a: "x\\ty\\x41\\n\\"\\\\"', {"a": 'x\tyA\n"\\'}),
    ("a: 'x\\ty'", {"a": "x\\ty"}),
    ('a: "\\xc3\\xa9\\x41"\nb: \\xe2\\x82\\xacé', {"a": "éA", "b": "€é"}),
    ("a: _INBOX.>\nb: q.*\nc: id:abc\nd: nats://127.0.0.1:1", {
        "a": "_INBOX.>", "b": "q.*", "c": "id:abc", "d": "nats://127.0.0.1:1"}),
    ("a: (\nx\n y)\n)\n", {"a": "\nx\n y)\n"}),
    ("# one\na: 1 # two\n// three\nb: 2 // four", {"a": 1, "b": 2}),
    ("a: [ # one\n x # two\n // three\n]", {"a": ["x"]}),
    ("a: b#c", {"a": "b#c"}),
    ("X: 1\na: $X", {"X": 1, "a": 1}),
    ("X: 1\nm { X: 2\n a: $X }\nb: $X", {"X": 1, "m": {"X": 2, "a": 2}, "b": 1}),
    ("a: $2a$11$abc", {"a": "$2a$11$abc"}),
    ("a: 1\na: 2", {"a": 2}),
    ("", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meaning"), MEANINGS, ids=range(len(MEANINGS)))
def test_a_text_means(text: str, meaning: object) -> None:
    assert read(text) == meaning
    assert read(text + "\n# trailing\n") == meaning


def test_environment_variables_are_values() -> None:
    found = read("a: $P\nb: $L\nc: $E\nd: $V", P="4444", L="[1, x]", E="", V="$P")
    assert found == {"a": 4444, "b": [1, "x"], "c": "", "d": 4444}


def test_an_environment_variable_that_is_no_text_is_refused() -> None:
    """Nobody could log in by such a password, and the server would end when somebody tries."""
    for value in ("x\udcff", '"\udcff"'):
        with pytest.raises(ConfigError, match="environment variable P is no text"):
            read("a: $P", P=value)


def test_comments_cost_what_they_are_long() -> None:
    """A file may have many, and servers look at it at each reload."""
    began = process_time()
    assert read("# one more line of many\n" * 100_000 + "a: 1") == {"a": 1}
    assert process_time() - began < 1


ERRORS = [
    ('a: "\\xff"', "x.conf:1:4: Parse error: these bytes are no text in UTF-8 (correct them)"),
    ("a: \\xc3", "x.conf:1:4: Parse error: these bytes are no text in UTF-8 (correct them)"),
    ("a: $X", "x.conf:1:4: Parse error: variable reference for 'X' on line 1 can not be found "
     "(set X above it or in the environment, or quote the value)"),
    ("a: 1\nb {\n c: 2\n", "x.conf:2:3: Parse error: a map is not closed (close it by '}')"),
    ("a: [1, 2", "x.conf:1:4: Parse error: an array is not closed (close it by ']')"),
    ("a: 1 b", "x.conf:1:6: Parse error: expected a new line, ',' or ';' after a value, but got "
     "'b' (quote the value if that belongs to it)"),
    ("a:\n1", "x.conf:1:3: Parse error: 'a' has no value: found a new line "
     "(write it on the line of its key)"),
    ("\n  a", "x.conf:2:3: Parse error: 'a' has no value: found the end of the file "
     "(write a value)"),
    ("a: .5", "x.conf:1:4: Parse error: a number must begin with a digit "
     "(write 0.5, or quote it)"),
    ('a: "x', "x.conf:1:4: Parse error: a string is not closed by '\"' (close it)"),
    ('a: "\\q"', "x.conf:1:5: Parse error: unknown escape '\\q' "
     '(use \\xXX, \\t, \\n, \\r, \\", \\\\ or single quotes)'),
    ("= 1", "x.conf:1:1: Parse error: there is no key before '=' (write a name before it)"),
    ("a: (x", "x.conf:1:4: Parse error: a block string is not closed "
     "(end it by a line that is just ')')"),
    ("a: 10e", "x.conf:1:4: Parse error: integer 10e is out of range"),
    ("a: [1,,2]", "x.conf:1:7: Parse error: found ',' where a value should be (remove it)"),
    ("include 'none.conf'", "x.conf:1:20: Parse error: include file 'none.conf': cannot be read: "
     "No such file or directory"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=range(len(ERRORS)))
def test_an_error_names_place_reason_and_remedy(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    expected = message.replace("x.conf:1:20", "x.conf:1:9")
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "text", [b"a: p\xe4ss", b'a: "p\xe4ss"', b"a: 'p\xe4ss'", b"a: (\n\xe4\n)\n", b"\xe4: 1"]
)
def test_bytes_that_are_no_text_are_refused_where_they_mean_something(
    text: bytes, tmp_path: Path
) -> None:
    """As one and the same character all of them would be the same password."""
    path = tmp_path / "x.conf"
    path.write_bytes(b"# M\xfcller\n" + text)
    with pytest.raises(ConfigError) as caught:
        parse(read_file(str(path)), "x.conf", {})
    column = 4 if text.startswith(b"a") else 1
    assert str(caught.value) == (
        f"x.conf:2:{column}: Parse error: these bytes are no text in UTF-8 (correct them)"
    )
    path.write_bytes(b"# M\xfcller\nb: 2 // \xe4")
    assert plain(parse(read_file(str(path)), "x.conf", {})) == {"b": 2}


def test_a_cycle_of_variables_is_an_error() -> None:
    with pytest.raises(ConfigError, match="refers to itself"):
        read("a: $A", A="$B", B="$A")


def test_a_long_chain_of_variables_is_an_error() -> None:
    """As long as any other nesting may be."""
    chain = {f"V{number}": f"$V{number + 1}" for number in range(300)} | {"V300": "end"}
    assert read("a: $V240", **chain) == {"a": "end"}
    with pytest.raises(ConfigError, match=r"more than 64 levels of maps, arrays and variables"):
        read("a: $V0", **chain)
    with pytest.raises(ConfigError, match="more than 64 levels"):
        read("a: " + "[" * 10 + "$V240", **chain)


def test_includes_are_relative_to_the_including_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.conf").write_text("a: 1\nm { include 'sub/one.conf' }\ninclude sub/one.conf")
    (tmp_path / "sub/one.conf").write_text('b: 2\ninclude "two.conf"')
    (tmp_path / "sub/two.conf").write_text("c: 3")
    path = str(tmp_path / "main.conf")
    found = plain(parse(Path(path).read_text(), path, {}))
    assert found == {"a": 1, "m": {"b": 2, "c": 3}, "b": 2, "c": 3}


def test_files_that_include_each_other_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("include a.conf")
    with pytest.raises(ConfigError, match="more than 16 files include each other"):
        parse("include a.conf", str(tmp_path / "main.conf"), {})


def test_files_that_include_each_other_deep_inside_are_an_error(tmp_path: Path) -> None:
    """The levels of all of them count: the interpreter has room for so many only."""
    (tmp_path / "a.conf").write_text("a { " * 20 + "\ninclude a.conf\n" + " }" * 20)
    with pytest.raises(ConfigError, match="more than 64 levels"):
        parse("include a.conf", str(tmp_path / "main.conf"), {})


def test_deep_nesting_is_an_error() -> None:
    with pytest.raises(ConfigError, match="more than 64 levels"):
        read("a: " + "[" * 1000)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(st.sampled_from("a1 :={}[](),;'\"\\#/$-.\n\tkx\x00é"), max_size=40))
def test_no_text_raises_anything_but_config_errors(text: str) -> None:
    try:
        root = parse(text, "x.conf", {"a": "1", "x": "$k"})
    except ConfigError as error:
        assert error.place
        return
    assert digest(root).startswith("sha256:")


SOUND = [
    '{ "port": 4222, "jetstream": {"store_dir": "x"} }',
    "port 4222",
    "port\n4222",
    "listen: 127.0.0.1:-1",
    "client_advertise: (\n abc)\n)\n",
    "server_tags: [a, b,]",
    "server_tags: [ # c\n a # d\n // e\n b ]",
    "max_payload: 1kb",
    "X: 1\nport: $X",
    "ping_interval: 10s",
    'server_name: "<&>"',
    "server_name: é",
    'server_name: "\\xc3\\xa9"',
    f"authorization {{ user: a, password: $2a$11${'a' * 53} }}",
    "websocket { port: -1, no_tls: true }\nleafnodes { listen: '127.0.0.1:-1' }",
    "jetstream { store_dir: x, max_file_store: 1MB, max_mem_store: 1MB }",
    "accounts { A { users [ {user: a, pass: b, permissions: {publish: {allow: 'a.>'}}} ],\n"
    " exports [ {service: s.x, accounts: [B]} ] }\n"
    " B { users [ {user: c, pass: d} ], imports [ {service: {account: A, subject: s.x}, to: y} ], "
    "jetstream: enabled } }",
    "cluster { name: c, listen: '127.0.0.1:-1', routes: [ nats://127.0.0.1:1 ] }",
    "mappings { a: b, 'c.*': [ {dest: 'd.$1', weight: 40%}, {dest: 'e.$1', weight: 60%} ] }",
    "http: 8222\nmax_connections: 10\nwrite_deadline: '5s'\nlame_duck_duration: '1m'",
]
WRONG = [
    "foo: 1",
    "port: abc",
    "port: 4222, host\n",
    "cluster { nam: x }",
    "cluster { routes: [ 1 ] }",
    "jetstream { foo: 1 }",
    "ping_interval: 2",
    "accounts { A { users [ {user: a, passwd: b} ] } }",
    "accounts { A { jetstrem: enabled } }",
    "accounts { $G { } }",
    "authorization { user: a, password: b, token: c }",
    "authorization { user: a, password: b, timeout: 1m }",
    "cluster { name: c, listen: '127.0.0.1:-1', authorization { user: a, pass: b, timeout: 61 } }",
    "accounts { A { exports [ {service: 's.*'} ] }, B { imports [\n"
    " {service: {account: A, subject: s.x}, to: y}, {service: {account: A, subject: s.z}, to: y}"
    " ] } }",
    "authorization { users [ {user: a, password: b}, {user: a, password: c} ] }",
    "authorization { users [ {user: a, permissions: {publish: 'a..b'}} ] }",
    "lame_duck_duration: '1s'",
    "server_name: 'a b'",
    "a: $nope",
    "include 'none'",
    "cluster [ 1 ]",
    "debug: 1",
    "mappings { a: [ {dest: b, weight: 60}, {dest: c, weight: 60} ] }",
    "port: 1]",
    "mappings { 'a.*': 'b.$2' }",
    "accounts { A { mappings { a: 'b..c' } } }",
    "accounts { A { }, B { imports [ {stream: {account: A, subject: a}} ] } }",
    "accounts { A { exports [ {service: s} ]\n imports [ {service: {account: B, subject: s}} ] }\n"
    " B { exports [ {service: s} ]\n imports [ {service: {account: A, subject: s}} ] } }",
]


@pytest.mark.parametrize("text", SOUND + WRONG)
@pytest.mark.processes
def test_nats_server_accepts_and_refuses_the_same(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jsctl.broker.app import main

    monkeypatch.chdir(tmp_path)
    Path("x.conf").write_text(text)
    command = [find_real_server(), "-t", "-c", "x.conf"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=False)
    ours = main(["-t", "-c", "x.conf"])
    assert (ours == 0) == (theirs.returncode == 0) == (text in SOUND), theirs.stderr


@pytest.mark.parametrize("text", SOUND)
@pytest.mark.processes
def test_the_digest_is_that_of_nats_server(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.conf"
    path.write_text(text)
    command = [find_real_server(), "-t", "-c", str(path)]
    theirs = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert digest(parse(text, "x.conf", {})) in theirs


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_payload: 1MB, max_pending: 1KB", "max_payload"),
        ("jetstream: enabled, cluster { name: c, port: -1 }", "server_name"),
        ('cluster { name: c, port: -1, routes: ["tls://127.0.0.1:6222"] }', "tls://"),
    ],
)
def test_a_file_with_which_a_server_does_not_start_is_not_valid(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from jsctl.broker.app import main

    path = tmp_path / "x.conf"
    path.write_text(text)
    assert main(["-t", "-c", str(path)]) == 1
    assert words in capsys.readouterr().err


def test_flags_count_when_a_file_is_tested(tmp_path: Path) -> None:
    from jsctl.broker.app import main

    path = tmp_path / "x.conf"
    path.write_text("jetstream: enabled, cluster { name: c, port: -1 }")
    assert main(["-t", "-c", str(path), "--name", "n1"]) == 0
