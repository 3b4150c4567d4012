"""`jsctl server generate --source`: bundles as the real tool renders them, and hostile ones."""

import json
import shlex
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.support.dialogues import Step, talked
from tests.support.nats_tool import NATS, needed

Run = Callable[..., Result]
LOCAL_HEADER_BYTES, LZMA_VERSION_BYTES = 30, 4
"""Of a ZIP archive: before a name, and before what LZMA was told."""
FORM = """
name: demo
description: |
  A {red}form{/red} for {{ ._target | base64 }}
properties:
  - {name: server_name, description: The name, required: true, default: n1}
  - {name: port, description: The port, type: integer, default: 4222}
  - {name: ratio, description: A ratio, type: float, default: "0.5"}
  - {name: js, description: JetStream, type: bool, default: "true"}
  - name: jetstream
    description: The settings of {{ "jetstream" | upper }}
    conditional: input.js == true && input.port > 80
    properties:
      - {name: store, description: Where, default: /data}
      - {name: address, description: Address, default: 10.0.0.1, validation: isIPv4(value)}
  - {name: never, description: Unseen, conditional: input.js == false}
  - {name: level, description: Level, enum: [low, high]}
  - {name: gone, description: Not there when empty, empty: absent}
  - {name: none, description: An empty list, empty: array}
  - {name: urls, description: Addresses, type: array}
  - name: users
    description: Users
    type: array
    properties:
      - {name: user, description: The user, required: true}
      - {name: admin, description: An admin, type: bool, conditional: input.users.user != "bob"}
  - name: accounts
    description: Accounts
    type: object
    empty: object
    properties:
      - {name: limit, description: The limit, default: "7"}
""".replace(" | base64", "")
MAIN = """name {{ .server_name | quote }} {{ .port | add 1 }} {{ .ratio }} {{ .js }} {{ .none }}
{{- with .jetstream }} {{ .store }} {{ .address }}{{ end }} {{ .level }} {{ hasKey . "gone" }}
urls {{ join "," .urls }} {{ len .urls }} never {{ .never }}
{{ range .users }}{{ .user }}={{ .admin }};{{ end }}
{{ .A }} {{ .accounts }}
{{ range seq 1 .port | trunc 9 | split " " }}<{{ . }}>{{ end }}
{{ list 3 1 2 | reverse | toJson }}
{{ dict "a" 1 "b" (list "<x>") | toJson }} {{ cat "a" 1 nil 2.5 }}
{{ default "d" "" }} {{ ternary 1 2 true }} {{ div 7 -2 }} {{ mod 7 -2 }} {{ max 1 "9" 3 }}
{{ sub "8" 3 }}
{{ substr 1 3 "abcdef" }} {{ "a b" | nospace | repeat 2 }} {{ indent 2 "x\\ny" }}
{{ squote 1 "b" }}
{{ title "hello world-wide it's" }} {{ trimAll "-" "--x-" }} {{ replace "a" "b" "aXa" }}
{{ "x" | b64enc }}
{{ render "_partials/one.got" (dict "x" 5) }} {{ seq 5 1 }} {{ seq 1 2 7 }}
{{ until 3 }} {{ untilStep 1 9 4 }}
{{- write "a/by.txt" (printf "%05d" .port) }}
{{ without (list 1 2 3) 2 }} {{ has 2 (list 1 2) }}
{{ first (list 4 5) }} {{ rest (list 4 5) }} {{ uniq (list 1 1) }}
"""
FILES: Mapping[str, str] = {
    "bundle.yaml": "description: a demo\nversion: 0.0.1\n"
    "pre_scaffold: before {{ .server_name }}\npost_scaffold: behind {{ .port }}\n",
    "scaffold.json": "{}",
    "form.yaml": FORM,
    "scaffold/main.conf": MAIN,
    "scaffold/a/plain.txt": "as it is\n",
    "scaffold/empty.txt": "{{ if false }}x{{ end }}\n",
    "scaffold/_partials/one.got": "partial {{ .x }}",
}
STEPS: tuple[Step, ...] = (
    ("Press enter", ""),
    ("server_name", "srv"),
    ("port", ""),
    ("ratio", "1.25"),
    ("js", "y"),
    ("store", ""),
    ("address", ""),
    ("level", ""),
    ("gone", ""),
    ("none", ""),
    ("Add first 'urls'", "y"),
    ("urls", "nats://a"),
    ("Add additional 'urls'", "n"),
    ("Add first 'users'", "y"),
    ("user", "bob"),
    ("Add additional 'users'", "y"),
    ("user", "ann"),
    ("admin", "y"),
    ("Add additional 'users'", "n"),
    ("Add accounts entry", "y"),
    ("Unique name", "A"),
    ("limit", "9"),
    ("Add accounts entry", "n"),
)


def laid(folder: Path, changed: Mapping[str, str] | None = None) -> Path:
    for name, text in {**FILES, **(changed or {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def packed(files: Mapping[str, str]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in ("scaffold", "scaffold/_partials", "scaffold/a"):
            archive.mkdir(folder)  # `nats` makes none by itself
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else "/"
        for path in sorted(folder.rglob("*"))
    }


MORE: Mapping[str, Mapping[str, str]] = {
    "path above": {"../out": "x"},
    "path of the root": {"/etc/out": "x"},
    "path of Windows": {"a\\..\\out": "x"},
    "many files": {f"scaffold/{at}": "x" for at in range(2000)},
}
"""What hostile archives have besides the files of a sound one."""


def damaged() -> bytes:
    """Packed with LZMA, with options that nothing can be unpacked with."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", "x" * 100)
    made = bytearray(out.getvalue())
    made[LOCAL_HEADER_BYTES + len("a") + LZMA_VERSION_BYTES] = 0xFF
    return bytes(made)


@pytest.fixture(scope="module")
def hostile() -> Callable[[str], bytes]:
    """Archives by what is wrong with them, each packed once, when a test wants it."""

    def pack(what: str) -> bytes:
        if what in MORE:
            return packed({**FILES, **MORE[what]})
        if what == "bomb":
            return packed({**FILES, "scaffold/bomb": "0" * 200_000_000})
        found = {"cut off": packed(FILES)[:-30], "text": b"text", "nothing": b""}
        found["name that is no text"] = packed({"\xe4": "x"}).replace(b"\xc3\xa4", b"\xc3\xc3")
        found["damaged"] = damaged()
        return found[what]

    return cache(pack)


@pytest.fixture
def served() -> Iterator[Callable[[bytes], str]]:
    """A web server for one answer."""
    contents: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if self.path == "/away" else 200)
            if self.path == "/away":
                self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
            self.wfile.write(contents[0])

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

        def serve(content: bytes) -> str:
            contents[:] = [content]
            return f"http://127.0.0.1:{server.server_address[1]}/bundle.zip"

        yield serve
        server.shutdown()


@needed
@pytest.mark.processes
@pytest.mark.parametrize("kind", ["folder", "archive", "url"])
def test_a_bundle_comes_to_the_same_as_with_nats(
    tmp_path: Path, kind: str, served: Callable[[bytes], str]
) -> None:
    """All kinds of questions on a terminal, their conditions and answers, and the templates."""
    assert NATS is not None
    made: list[dict[str, str]] = []
    steps = STEPS if kind == "folder" else STEPS[:1]
    changed = {} if kind == "folder" else {"form.yaml": FORM.partition("  - {name: ratio")[0]}
    plain = "{{ .server_name }} {{ .port }}\n" if changed else MAIN
    files = {**FILES, **changed, "scaffold/main.conf": plain}
    if changed:
        steps = (*steps, ("server_name", "srv"), ("port", ""))
    for name, program in (("nats", [NATS]), ("jsctl", [sys.executable, "-m", "jsctl"])):
        source = str(laid(tmp_path / f"bundle-{name}", files))
        if kind == "archive":
            source = str(tmp_path / f"{name}.zip")
            Path(source).write_bytes(packed(files))
        elif kind == "url":
            source = served(packed(files))
        words = f"server generate {tmp_path}/{name}-made --source {source}"
        assert talked(program, tmp_path, words, steps) == 0
        made.append(tree(tmp_path / f"{name}-made"))
    assert made[0] == made[1]
    assert "a/by.txt" in made[0] or kind != "folder"


WRONG_FORM = """
name: demo
properties:
  - {name: name, description: The name, help: Any word, required: true}
  - {name: port, description: The port, type: integer, default: 4222}
  - {name: js, description: JetStream, type: bool, default: "true"}
  - {name: secret, description: A secret, type: password, required: true, help: Nobody sees it}
  - {name: urls, description: Addresses, type: array, required: true, help: Of servers}
"""
WRONG_STEPS: tuple[Step, ...] = (
    ("Press enter", ""),
    ("? name [? for help]", ""),
    ("too short. Min length is 1", "?"),
    ("? Any word", "srv"),
    *(("? port (4222)", "none") for _ in range(7)),
    ("validation did not pass: isInt(value)", "4333"),
    ("? js (Y/n)", "maybe"),
    ('"maybe" is not a valid answer, please try again.', "n"),
    ("? secret [? for help]", "?"),
    ("? Nobody sees it", ""),
    ("too short. Min length is 1", "hidden"),
    ("? urls [? for help]", "?"),
    ("? Of servers", "a"),
    ("Add additional 'urls' entry (y/N)", "n"),
)


@needed
@pytest.mark.processes
def test_wrong_answers_are_asked_for_again_as_with_nats(tmp_path: Path) -> None:
    """Until there is a right one; a `?` where there is help is no answer."""
    assert NATS is not None
    head = "description: x\nversion: 0.0.1\n"
    files = {"bundle.yaml": head, "form.yaml": WRONG_FORM, "scaffold/main.conf": "{{ . }}"}
    made: list[str] = []
    for program in ([NATS], [sys.executable, "-m", "jsctl"]):
        folder = tmp_path / Path(program[0]).name  # `nats` removes a bundle that it has used.
        source = laid(folder / "bundle", files)
        assert talked(program, folder, f"server generate made --source {source}", WRONG_STEPS) == 0
        made.append((folder / "made" / "main.conf").read_text().replace(str(source), ""))
    assert made[0] == made[1]
    assert "secret:hidden" in made[0]


def test_flags_answer_all_questions(cli: Run, tmp_path: Path) -> None:
    source = laid(tmp_path / "bundle")
    sets = "--set port=9 --set urls=a,b --set server_name=x"
    words = f"server generate {tmp_path}/made --source {source} --defaults {sets}"
    done = cli(*shlex.split(words))
    assert done.code == 0, done.err
    assert "before x" in done.out and "behind 9" in done.out
    assert tree(tmp_path / "made")["main.conf"].splitlines()[0] == (
        'name "x" 10 0.5 true [] low false'  # a port below 80 has no JetStream
    )
    assert (tmp_path / "made" / "main.conf").stat().st_mode & 0o077 == 0


DEEP = "properties: &a\n  - {name: x, properties: *a}"
WIDE = "properties: [" + "{name: x}," * 600 + "]"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"scaffold/x": '{{ write "../../out" "x" }}'}, "not in target directory"),
        ({"scaffold/x": '{{ write "a/../../out" "x" }}'}, "not in target directory"),
        ({"scaffold/x": '{{ render "../bundle.yaml" . }}'}, "not in source directory"),
        ({"scaffold/x": '{{ render "/etc/passwd" . }}'}, "no such file"),
        ({"scaffold/x": '{{ render "x" . }}'}, "render each other"),
        ({"scaffold/x": '{{ env "HOME" }}'}, 'function "env" not defined'),
        ({"scaffold/x": '{{ getHostByName "a" }}'}, "not defined"),
        ({"scaffold/x": '{{ repeat 99999999 "x" }}'}, "a text has at most"),
        ({"scaffold/x": "{{ until 9999999 }}"}, "no more than"),
        (
            {"scaffold/x": '{{ $a := "xx" }}{{ range until 60 }}{{ $a = print $a $a }}{{ end }}'},
            "at most",
        ),
        (
            {"scaffold/x": "{{$a := list 1}}{{ range until 60 }}{{ $a = concat $a $a }}{{ end }}"},
            "no more than",
        ),
        ({"scaffold/x": '{{ range until 99999 }}{{ write (print .) "x" }}{{ end }}'}, "files"),
        ({"scaffold/x": '{{ fail "no" }}'}, "no"),
        ({"scaffold.json": '{"post": [{"*": "touch /tmp/x"}]}'}, "run commands"),
        ({"scaffold.json": '{"Post": [{"*": "touch /tmp/x"}]}'}, "run commands"),
        ({"scaffold.json": '{"source_directory": "../x"}'}, "insecure paths"),
        ({"scaffold.json": '{"source_directory": "/etc"}'}, "insecure paths"),
        ({"scaffold.json": '{"source": {"a": "b"}}'}, "only source directory"),
        ({"scaffold.json": '{"left_delimiter": "<<"}'}, "must be set"),
        ({"scaffold.json": "[" * 100_000}, "scaffold.json"),
        ({"form.yaml": "properties: []"}, "no properties defined"),
        ({"form.yaml": DEEP}, "recursive"),
        ({"form.yaml": WIDE}, "more than 500 questions"),
        ({"form.yaml": "a: " + "[" * 10_000}, "yaml"),
        ({"form.yaml": "x" * 300_000}, "larger than"),
        ({"form.yaml": "properties: [{name: x, type: fly}]"}, "unsupported property type"),
        ({"form.yaml": "properties: [{name: x, required: true}]"}, "too short"),
        ({"form.yaml": "properties: [{name: x, type: integer, default: abc}]"}, "isInt(value)"),
        ({"form.yaml": "properties: [{name: x, type: array, required: true}]"}, "on a terminal"),
        ({"form.yaml": "properties: [{name: x, conditional: '1 +'}]"}, "invalid expression"),
        ({"bundle.yaml": "version: 1"}, "require a description"),
        ({"bundle.yaml": "description: x\nrequires: {operator: true}"}, "no operator found"),
    ],
)
def test_what_a_hostile_bundle_wants_is_refused(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], told: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "in").mkdir()
    source = laid(tmp_path / "bundle", changed)
    done = cli(*shlex.split(f"server generate {tmp_path}/in/made --source {source} --defaults"))
    assert (done.code, told in done.err) == (1, True), done.err
    assert len(done.err) < 600
    assert list((tmp_path / "in").iterdir()) == []


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("path above", "insecure paths"),
        ("path of the root", "insecure paths"),
        ("path of Windows", "insecure paths"),
        ("bomb", "larger than 8388608 bytes"),
        ("many files", "more than 1000"),
        ("cut off", "not a valid zip file"),
        ("text", "not a valid zip file"),
        ("nothing", "not a valid zip file"),
        ("name that is no text", "not a valid zip file"),
        ("damaged", "not a valid zip file"),
    ],
)
@pytest.mark.parametrize("over", ["file", "web"])
def test_hostile_archives_are_refused(
    cli: Run,
    tmp_path: Path,
    served: Callable[[bytes], str],
    hostile: Callable[[str], bytes],
    what: str,
    told: str,
    over: str,
) -> None:
    (tmp_path / "in").mkdir()
    content = hostile(what)
    (tmp_path / "b.zip").write_bytes(content)
    source = served(content) if over == "web" else str(tmp_path / "b.zip")
    done = cli(*shlex.split(f"server generate {tmp_path}/in/made --source {source} --defaults"))
    assert (done.code, told in done.err) == (1, True), done.err
    assert list((tmp_path / "in").iterdir()) == []


def test_half_characters_are_none_as_with_go(cli: Run, tmp_path: Path) -> None:
    text = '{{ printf "%c" 55296 }}{{ printf "%c" 56448 }}{{ fromJson "\\"\\\\ud800\\"" }}'
    text += '{{ fromJson "[\\"\\\\ud83d\\\\ude00\\"]" | first }}'
    bundle = {"bundle.yaml": f"description: x\npost_scaffold: '{text}'\n", "scaffold/x": text}
    source = laid(tmp_path / "bundle", bundle)
    done = cli(*shlex.split(f"server generate {tmp_path}/made --source {source} --defaults"))
    assert (done.code, "\ufffd\ufffd\ufffd\U0001f600" in done.out) == (0, True), done.err
    made = (tmp_path / "made" / "x").read_text(encoding="utf-8")
    assert made == "\ufffd\ufffd\ufffd\U0001f600"


@pytest.mark.parametrize("source", ["file:///etc/passwd", "ftp://h/x", "fs:///operator", "://"])
def test_other_schemes_are_refused(cli: Run, tmp_path: Path, source: str) -> None:
    done = cli("server", "generate", str(tmp_path / "made"), "--source", source, "--defaults")
    assert (done.code, "http and https" in done.err) == (1, True)


def test_a_page_that_leads_to_a_file_is_not_followed(
    cli: Run, tmp_path: Path, served: Callable[[bytes], str]
) -> None:
    url = served(b"").replace("bundle.zip", "away")
    done = cli("server", "generate", str(tmp_path / "made"), "--source", url, "--defaults")
    assert (done.code, "cannot fetch" in done.err) == (1, True)


def test_links_in_a_bundle_are_not_followed(cli: Run, tmp_path: Path) -> None:
    source = laid(tmp_path / "bundle")
    (source / "scaffold" / "secret").symlink_to("/etc/passwd")
    words = f"server generate {tmp_path}/made --source {source} --defaults"
    done = cli(*shlex.split(words))
    assert (done.code, "invalid file in source: scaffold/secret" in done.err) == (1, True)


def test_a_terminal_is_told_no_secret_signs(cli: Run, tmp_path: Path) -> None:
    """Texts of a bundle come without control characters."""
    head = json.dumps({"description": "x", "post_scaffold": "a\x1b]0;title\x07b"})
    source = laid(tmp_path / "bundle", {"bundle.yaml": head})
    done = cli(*shlex.split(f"server generate {tmp_path}/made --source {source} --defaults"))
    assert done.code == 0 and "\x1b" not in done.out and "a]0;titleb" in done.out
