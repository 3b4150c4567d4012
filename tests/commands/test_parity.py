"""The same words to the real `nats` tool, where it is installed, give the same answer."""

import re
from collections.abc import Callable

from tests.commands.conftest import Result, Server
from tests.support import nats_tool

Run = Callable[..., Result]
pytestmark = nats_tool.needed

PROGRAM = re.compile(r"^(usage: )?nats\b", re.MULTILINE)
AGE = re.compile(r"\b(\d+(\.\d+)?(µs|ms|s|m|h))+\b")
RULE = re.compile(r"─+|[ ]{2,}")
ALTERNATE = re.compile(r"^.*Cluster: C1$", re.MULTILINE)

SAME = (
    "stream ls",
    "stream ls -n",
    "stream ls -j",
    "stream ls --subject a.1",
    "stream ls --subject none",
    "stream report",
    "stream report -n",
    "stream report --subject none",
    "stream info A",
    "stream info M",
    "stream info A --state",
    "stream state A",
    "stream subjects A",
    "stream subjects A -j",
    "stream get A 1",
    "stream get A 1 -j",
    "stream get A -S a.2",
    "stream get A 99",
    "consumer ls A",
    "consumer ls A -n",
    "consumer ls A -j",
    "consumer ls M",
    "consumer info A PULL",
    "consumer info A PUSH",
    "consumer state A PULL",
    "consumer report A",
    "stream rm",
    "stream rm A",
    "stream purge A",
    "stream add",
    "stream add X",
    "stream add X --subjects x --storage tape --defaults",
    "stream add --config /nope",
    "consumer add A",
    "consumer add A X",
)


def normal(text: str) -> str:
    """Without what differs from one moment to the next."""
    text = PROGRAM.sub(r"\1jsctl", text)
    return ALTERNATE.sub("", RULE.sub(" ", AGE.sub("AGE", text)))


def test_answers_are_the_same(run: Run, server: Server, publish: Callable[..., None]) -> None:
    assert run("stream", "add", "A", "--subjects", "a.*", "--replicas", "3", "--defaults").code == 0
    assert run("stream", "add", "M", "--mirror", "A", "--defaults").code == 0
    for number in (0, 1, 1, 2, 2, 2):
        publish(f"a.{number}", b"hello", {"K": "v"})  # no ties: theirs come in any order
    run("consumer", "add", "A", "PULL", "--pull", "--defaults")
    run("consumer", "add", "A", "PUSH", "--target", "t", "--ack", "explicit", "--defaults")
    assert run("consumer", "next", "A", "PULL").code == 0
    different: list[str] = []
    for line in SAME:
        theirs = nats_tool.nats("-s", server.url, *line.split())
        ours = run(*line.split())
        pairs = (
            (theirs.returncode, ours.code),
            (normal(theirs.stdout), normal(ours.out)),
            (normal(theirs.stderr), normal(nats_tool.without_hints(ours.err))),
        )
        different += [f"{line}\n{them}\n{we}" for them, we in pairs if them != we]
    assert not different, "\n\n".join(different)
