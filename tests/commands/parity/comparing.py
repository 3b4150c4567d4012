"""What is compared of the answers to a story's lines, between the tools and the servers."""

import re
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from time import monotonic

import pytest

from tests.commands.parity.conftest import LINES, Place, Said, tidied
from tests.commands.parity.stories import DIFFERENT, OTHER_SERVER, Answers, Own, pieces, told
from tests.support.nats_tool import needed

Pair = tuple[tuple[str, str], tuple[str, str]]
PAIRS: tuple[Pair, ...] = (
    (("nats", "nats-server"), ("jsctl", "nats-server")),
    (("nats", "jsctl"), ("jsctl", "jsctl")),
    (("nats", "nats-server"), ("nats", "jsctl")),
)
"""Both tools on each kind of server, and the real tool on both kinds."""
OWN_PAIR: Pair = (("jsctl", "nats-server"), ("jsctl", "jsctl"))
"""This tool on both kinds, which follows from the others where the tools answer alike."""

MISSING = re.compile(
    r"could not (?:pick a Stream to operate on|select (?:Stream|Consumer)): .*|"
    r"cannot pick an? (?:Operator|Account|User) without a terminal and no .* supplied|"
    r"unknown (?:operator|Account|User): .*|"
    r'(?:could not [\w ]+: )?(?:(?:stream|consumer) ".*": )?(?:stream|consumer) not found.*|'
    r'(?<=error: )".*" is not a valid (?:stream|consumer) name'
)
"""`nats` says that it cannot show a list when a name is wrong."""
DIFFERENCES = re.compile(r"Differences \(-old \+new\):\n(?:.*\n)*?(?=Stream|Consumer|jsctl|\Z)")
"""Of a configuration that is edited: shown in a form of each tool's own."""
END_OF_PULL = re.compile(
    r"^--- subject: INBOX\n\nHeaders:\n\n(?: .*\n)*? Status: 408\n(?: .*\n)*\nData:\n*"
    r"|(?<=error: )could not (?:Acknowledge|Terminate) message"
    r": nats: message does not have a reply",
    re.MULTILINE,
)
"""Of a request that brought nothing: `nats` shows the server's answer as a message, if that comes
before its own deadline, which is the same one."""
HEADERS = re.compile(r"(?<=^Headers:\n\n)(?:^ .*\n)+", re.MULTILINE)
"""Of a message, which `nats` tells in any order."""
REQUIRED = re.compile(r"(?<=error: required flags )--.+(?= not provided)")
"""Of a command: `nats` names them in any order."""
CONNECTED = re.compile(r"^CLOCK >>> Connected to .*\n", re.MULTILINE)
"""With `--trace`: `nats` tells it in between, and sometimes after it has ended, which is never."""
SYSTEM = re.compile(
    r"^│ +(?:Server Overview|\d+ Connections|.* Connections Overview|.* Accounts Overview)|"
    r"^Server information for|^Information for Account|^round trip|min: |Top .* Servers|^OK n1"
    r"|\bCID\b|In Msgs|connect_time",
    re.MULTILINE,
)
"""Reports of servers, whose numbers are those of the moment and of the tool's own connection."""
NOTHING = "no message received: nats: timeout"
NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?(?:%| [KMG]?i?B\b)?")
BARS = re.compile(r"[█▏▎▍▌▋▊▉]+")
SOURCES = re.compile(r"^ *Stream Name: .*\n(?:^ *[^\s:][^:\n]*: .*\n)+\n?", re.MULTILINE)
"""Of a stream with several, which the servers tell in any order."""
BUCKETS = re.compile(
    r"^ *Source Bucket: .*\n(?:^ *(?!Source Bucket)[^\s:][^:\n]*: .*\n)*", re.MULTILINE
)
"""The same of a bucket."""
FLAGS = re.compile(r" \[<flags>\]")
"""In the first line of a page below an error: commands that have no flags there may have some here.
Which flags there are is compared by the test of the tree."""
ROWS = re.compile(r"(?:^│.*\n)+", re.MULTILINE)


def _sorted(kind: re.Pattern[str], text: str) -> str:
    found = iter(sorted(one.strip() for one in kind.findall(text)))
    return kind.sub(lambda _: f"{next(found)}\n", text)


def tidy(text: str) -> str:
    text = DIFFERENCES.sub("DIFFERENCES\n", MISSING.sub("MISSING", CONNECTED.sub("", text)))
    text = END_OF_PULL.sub(lambda found: "" if "408" in found[0] else NOTHING, text)
    text = REQUIRED.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text)
    text = HEADERS.sub(lambda found: "".join(sorted(found[0].splitlines(True))), text)
    if text.startswith("usage: "):
        return FLAGS.sub("", text.partition("\n")[0], 1)
    if SYSTEM.search(text):
        text = NUMBER.sub("N", BARS.sub("BAR", text))
    text = _sorted(BUCKETS, _sorted(SOURCES, text))
    return ROWS.sub(lambda rows: "\n".join(sorted(rows[0].splitlines())), text)


STORY_S = 1500
"""Of up to 200 lines, each told to four sides; on a busy machine a line takes seconds."""

Compare = Callable[[str, Callable[[str], Place], Own, Path], None]
Level = Callable[[str, bool], str]
"""Takes more out of an answer; the other argument is whether its line changes nothing."""


def as_it_is(text: str, _settled: bool) -> str:
    return text


def alike(folder: str, level: Level = as_it_is, patience_s: float = 0.0) -> Compare:
    """The test of a folder's stories, each piece by itself.

    So long a line that changes nothing is asked again, and at least once.
    """
    stories = sorted(path.stem for path in (LINES / folder).glob("*.txt"))

    @needed
    @pytest.mark.timeout(STORY_S)
    @pytest.mark.parametrize("story", [piece for story in stories for piece in pieces(story)])
    def test(story: str, servers: Callable[[str], Place], own: Own, tmp_path: Path) -> None:
        compare(story, servers, own, tmp_path, level, patience_s)

    return test


def compare(
    story: str,
    servers: Callable[[str], Place],
    own: Own,
    folder: Path,
    level: Level,
    patience_s: float,
) -> None:
    """Fails with all lines of a story that are answered differently and not marked so."""

    def levelled(answers: Answers, settled: bool) -> Answers:
        return {
            who: Said(one.code, level(one.out, settled), level(one.err, settled))
            for who, one in answers.items()
        }

    different: list[str] = []
    for line, ask, twice in told(story, servers, own, folder):
        found = differences(line, levelled(ask(), twice))
        end = monotonic() + patience_s
        while found and twice:
            found = differences(line, levelled(ask(), twice))
            if monotonic() > end:
                break
        different += found
    assert not different, "\n".join(different)


def differences(line: str, answers: Answers) -> list[str]:
    """Between the sides, in the form of `diff`; a mark that nothing needs any more is one too.

    Where the tools differ, each of them is still answered alike by both kinds of server.
    """
    texts = {one: str(tidied(one, tidy)) for one in {*answers.values()}}
    said = {who: texts[one] for who, one in answers.items()}
    pairs = PAIRS
    if line.startswith(DIFFERENT):
        if said[PAIRS[0][0]] == said[PAIRS[0][1]]:
            return [f"# no difference any more: {line}"]
        servers_too = line.removeprefix(DIFFERENT).startswith(OTHER_SERVER)
        pairs = () if servers_too else (PAIRS[-1], OWN_PAIR)
    elif line.startswith(OTHER_SERVER):
        pairs = PAIRS[:-1]
    found: list[str] = []
    for one, other in pairs:
        if said[one] != said[other]:
            names = (" on ".join(one), " on ".join(other))
            both = (said[one].splitlines(), said[other].splitlines())
            found += [f"# {line}", *unified_diff(*both, *names, n=1, lineterm="")]
    return found
