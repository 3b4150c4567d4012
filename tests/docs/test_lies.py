"""A document that lies is found out: wrong output, a status that it does not tell, no prompt."""

from pathlib import Path

import pytest

from tests.docs.comparing import says
from tests.docs.reading import Page
from tests.docs.running import Reader, served
from tests.docs.test_examples import rewrite

TEXT = """# Numbers

<!-- before
$ jsctl stream add HIDDEN --subjects hidden --defaults
-->
```console
$ jsctl stream ls --names  # one is there
HIDDEN

$ echo 'some text' \\
      | cat
some text
```

<!-- not run: needs hands -->
```console
$ jsctl context edit prod
```

<!-- beside -->
```console
$ jsctl subscribe told --count 1 --raw
%(said)s
```

```console
$ jsctl publish told truth --quiet
$ jsctl stream info NONE
jsctl: error: stream "NONE": stream not found (10059)
$ echo $?
%(status)s
```
"""


def page(folder: Path, text: str) -> Page:
    """A document of its own."""
    path = folder / "page.md"
    path.write_text(text)
    return Page(path)


def test_examples_are_found_with_what_is_shown(tmp_path: Path) -> None:
    found = page(tmp_path, TEXT % {"said": "...", "status": "1"}).examples
    assert [(one.line, one.command) for one in found] == [
        (4, "jsctl stream add HIDDEN --subjects hidden --defaults"),
        (7, "jsctl stream ls --names  # one is there"),
        (10, "echo 'some text' | cat"),
        (17, "jsctl context edit prod"),
        (22, "jsctl subscribe told --count 1 --raw"),
        (27, "jsctl publish told truth --quiet"),
        (28, "jsctl stream info NONE"),
        (30, "echo $?"),
    ]
    assert found[1].shown == ("HIDDEN",)
    assert [one.why_not for one in found if one.why_not] == ["needs hands"]
    assert [one.line for one in found if one.beside] == [22]


def test_a_block_that_is_no_terminal_counts(tmp_path: Path) -> None:
    found = page(tmp_path, "```\njsctl rtt\n```\n\n```sh\n$ A=1 jsctl rtt\n```\n").examples
    assert [one.command for one in found] == ["jsctl rtt", "A=1 jsctl rtt"]
    with pytest.raises(AssertionError, match="begins with a prompt"):
        _ = page(tmp_path, "```console\njsctl rtt\n```\n").examples


@pytest.mark.parametrize(
    ("shown", "told", "same"),
    [
        ("3 messages", "3 messages\n", True),
        ("3 messages", "4 messages\n", False),
        ("3 messages", "3 messages\nand an error\n", False),
        ("created 2026-01-01 10:00:00", "created 2027-02-03 11:12:13\n", True),
        ("created 2026-01-01 10:00:00", "created\n", False),
        ("took 1.2ms", "took 15.7s\n", True),
        ("Max Age: 24h0m0s", "Max Age: 25h0m0s\n", False),
        ("│ n1:4222   │", "│ n1:4222 │\n", True),
        ("one\n...\nfour", "one\ntwo\nthree\nfour\n", True),
        ("one\n...\nfour", "one\nfour\n", True),
        ("one\n...\nfive", "one\ntwo\nthree\nfour\n", False),
        ("...", "anything\n", True),
        ("", "anything\n", True),
    ],
)
def test_only_what_is_volatile_may_differ(shown: str, told: str, same: bool) -> None:
    assert says(shown.splitlines(), told) is same


@pytest.mark.processes
def test_a_page_that_lies_is_told_so(tmp_path: Path) -> None:
    """The message is another one, and so is the status; rewritten, the page is true."""
    folder = tmp_path / "work"
    folder.mkdir()
    lying = page(tmp_path, TEXT % {"said": "lies", "status": "0"})
    with served(lying) as brokers:
        reader = Reader(lying, folder, brokers, patient=False)
        reader.follow()
    assert [one.partition("\n")[0] for one in reader.wrong] == [
        "page.md:30: echo $?",
        "page.md:22: jsctl subscribe told --count 1 --raw",
    ]
    assert "-lies\n+truth" in reader.wrong[1]
    rewrite(lying, reader.told)
    assert lying.path.read_text() == TEXT % {"said": "truth", "status": "1"}


@pytest.mark.processes
def test_a_failure_that_a_page_does_not_tell_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    silent = page(tmp_path, "```console\n$ jsctl stream info NONE\n$ jsctl rtt\n```\n")
    with served(silent) as brokers:
        reader = Reader(silent, folder, brokers, patient=False)
        reader.follow()
    assert [one.splitlines()[:2] for one in reader.wrong] == [
        ["page.md:2: jsctl stream info NONE", "exit status 1"]
    ]
