"""`bench`: first lines, results and refusals; the figures are each tool's own."""

import re

from tests.commands.parity.conftest import Same

FIGURE = re.compile(r"\b\d[\d,.]*(us| [KMG]?i?B/sec| msgs/sec| msgs\b)|min \S+ \| avg .*")
LINES = """
bench pub b --msgs 300 --no-progress
bench pub b --msgs 300 --clients 2 --no-progress --multisubject --multisubjectmax 7
bench pub b --msgs 20 --throughput 200 --no-progress
bench pub b --throughput 200 --duration 100ms --no-progress
bench pub b --duration 1s
bench pub b --duration 1s --throughput 0
bench pub b --msgs 0
bench pub b --size x
bench js pub sync b.1 --msgs 20 --no-progress
bench js pub sync b.1 --msgs 20 --create --no-progress
bench js pub async b.1 --msgs 20 --no-progress --dedup --purge
bench js pub atomic b.1 --msgs 20 --batch 7 --no-progress
bench js pub fast b.1 --msgs 20 --batch 7 --no-progress
bench js pub async b.1 --msgs 20 --no-progress --create --replicas 2
bench js ordered --msgs 20 --no-progress
bench js consume --msgs 20 --no-progress
bench js fetch --msgs 20 --no-progress
bench js get sync --msgs 20 --no-progress
bench js get batch --msgs 20 --no-progress
bench js get batch --msgs 20 --no-progress --filter nobody
bench kv put --msgs 20 --no-progress
bench kv put --msgs 20 --no-progress --storage memory
bench kv get --msgs 20 --no-progress
bench kv get --msgs 21 --no-progress
bench oldjs ordered nobody.x --msgs 10 --clients 2 --no-progress
bench kv
bench js
bench service
"""


def tidy(text: str) -> str:
    """Without figures, and the name of the program in a hint."""
    text = re.sub(r"`(nats|jsctl) stream", "`jsctl stream", text)
    return re.sub(r"N( \| \S+ N)*", "N", FIGURE.sub("N", text))


def test_benchmarks(same: Same) -> None:
    same(LINES, tidy=tidy)
