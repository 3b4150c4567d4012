"""Parts of a benchmark that can be run each by itself, beside nats-server.

python -m benchmarks.<file> [--only NAME ...] [--small] [--runs N] [--side jsctl|nats-server]
"""

import argparse
from collections.abc import Callable, Mapping, Sequence

from benchmarks import figure
from benchmarks.__main__ import HEADER, Line
from benchmarks.figure import Figure
from benchmarks.servers import OURS, REAL, Kind

Part = Callable[[Kind, int], dict[str, Figure]]
"""Measures one kind of server with its sizes divided by a number: figures by the title of a row."""
SMALL = 100
"""What sizes are divided by for a try of whether everything works."""


def main(about: str | None, parts: Mapping[str, Part], words: Sequence[str] | None = None) -> None:
    """Run what is asked for and print a row for each figure."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--only", nargs="+", choices=sorted(parts), help="these parts alone")
    parser.add_argument("--small", action="store_true", help="a hundredth of the sizes")
    parser.add_argument("--runs", type=int, default=1, help="medians of so many")
    parser.add_argument("--side", choices=[OURS.name, REAL.name], help="one of the two alone")
    asked = parser.parse_args(words)
    print(f"{asked.side}, and CPU a message" if asked.side else HEADER)
    for name in asked.only or parts:
        sides = [kind for kind in (OURS, REAL) if asked.side in (None, kind.name)]
        found = [_figures(parts[name], kind, asked) for kind in sides]
        for title, one in found[0].items():
            if asked.side:
                print(f"{title:44}{one.value:14,.1f} {one.unit:6}{one.cpu_us:10.2f} us", flush=True)
            else:
                print(Line(title, one, found[1][title], name).text(), flush=True)


def _figures(part: Part, kind: Kind, asked: argparse.Namespace) -> dict[str, Figure]:
    runs = [part(kind, SMALL if asked.small else 1) for _ in range(asked.runs)]
    return {title: figure.median([run[title] for run in runs]) for title in runs[0]}
