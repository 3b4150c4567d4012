"""`server watch` and graphs: what is told while they run, and the pictures they leave."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.api.monitoring.accountz import AccountStat
from jsctl.api.server import DataStats
from jsctl.commands.toolkit.monitoring import graphs
from jsctl.render.charts import PNG_ZOOM, SVG_EDGE, SVG_WIDTH, bars, line_chart, svg
from jsctl.render.reports.server.activity import account_sums
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server
from tests.support.interrupted import in_a_pipe, on_a_terminal

Run = Callable[..., Result]
ENABLED = ["nats-server", "jsctl"]
of_both = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package")


def system(server: Server) -> tuple[str, ...]:
    return ("-s", server.url, "--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)


@of_both
@pytest.mark.processes
@pytest.mark.parametrize(
    ("kind", "title", "column"),
    [
        ("servers", b"Server activity by CPU at 20", b"Gateways"),
        ("jetstream", b"Server activity by API Requests at 20", b"HA Assets"),
    ],
)
def test_servers_tell_of_themselves(kind: str, title: bytes, column: bytes, server: Server) -> None:
    server.cluster.wait_meta_leader()
    sort = {"servers": "cpu", "jetstream": "api"}[kind]
    words = (*system(server), "server", "watch", kind, "--sort", sort)
    found = in_a_pipe(words, b"Top 3 Server activity", 2)
    assert title in found and column in found
    rows = json.loads(in_a_pipe((*words, "-n", "1", "-o", "jsonl"), b"\n", 1).partition(b"\n")[0])
    assert rows["server"] in ("n1", "n2", "n3")


@of_both
@pytest.mark.processes
def test_requests_of_accounts_are_counted(server: Server) -> None:
    watch = (*system(server), "server", "watch", "api", "requests", "--rate", "10s")
    assert b"Waiting for requests..." in in_a_pipe(watch, b"Waiting", 1)


@pytest.mark.processes
def test_accounts_are_waited_for(server: Server) -> None:
    words = (*system(server), "server", "watch", "accounts", "--sort", "sentb")
    assert b"Account activity by Sent Bytes at 20" in in_a_pipe(words, b"Account activity", 1)


def test_ordinary_accounts_are_told_why(run: Run) -> None:
    result = run("server", "watch", "servers")
    assert (result.code, "has system privileges" in result.err) == (1, True)
    assert run("server", "watch", "servers", "--sort", "luck").code == 1
    assert "--account" in run("server", "watch", "api", "requests", "--account", "[").err


@of_both
@pytest.mark.processes
def test_curves_on_a_terminal(run: Run, server: Server) -> None:
    run("stream", "add", "CURVES", "--subjects", "c", "--defaults")
    run("consumer", "add", "CURVES", "C", "--pull", "--defaults")
    for words, title in (
        (("-s", server.url, "stream", "graph", "CURVES"), b"Stream Statistics for CURVES"),
        (("-s", server.url, "consumer", "graph", "CURVES", "C"), b"Consumer Statistics for CURVES"),
        ((*system(server), "server", "graph", "n1"), b"Server Statistics for n1"),
        ((*system(server), "server", "graph", "n1", "-j"), b"JetStream Statistics for n1"),
    ):
        _, left = on_a_terminal(words, title, 1)
        assert left.startswith(title)
        assert "┼".encode() in left and b"/ second\r\n" in left


def test_pictures_of_curves(run: Run, tmp_path: Path) -> None:
    run("stream", "add", "CURVES", "--subjects", "c", "--defaults")
    graph = ("stream", "graph", "CURVES")
    assert run(*graph).err == "jsctl: error: can only graph data on an interactive terminal\n"
    target = tmp_path / "curves.svg"
    result = run(*graph, "--svg", str(target), "--samples", "2")
    assert (result.code, result.out) == (0, "")
    picture = ElementTree.parse(target).getroot()
    lines = [one for one in picture.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 3
    assert len(lines[0].attrib["points"].split()) == 3
    assert run(*graph, "--svg", str(tmp_path / "no" / "x.svg")).code == 1
    assert run(*graph, "--svg", str(target), "--samples", "1").code == 1


def test_lines_of_a_chart() -> None:
    chart = line_chart([0, 2, 2, 1], "Caption", lambda value: f"{value:.0f}", width=4, height=2)
    assert chart.splitlines() == [
        " 2 ┤╭─╮",
        " 1 ┤│ ╰",
        " 0 ┼╯",
        "Caption",
    ]
    flat = line_chart([], "None", str, width=3, height=1).splitlines()
    assert flat[1] == " 0.0 ┼──"


def test_bars_of_a_chart() -> None:
    assert bars({"b": 10.0, "a": 0.0, "long": 5.0}, "Use", str, width=10).splitlines() == [
        "Use",
        "",
        "     a: ▏ (0.0)",
        "  long: █████ (5.0)",
        "     b: ██████████ (10.0)",
    ]
    assert bars({}, "Use", str).splitlines() == ["Use"]


def test_pictures_hold_any_name() -> None:
    picture = svg("<&>", [("a & b", [], str)])
    assert ElementTree.fromstring(picture) is not None


def test_sums_of_an_account() -> None:
    several = [
        AccountStat(acc="A", name="N", conns=count, sent=DataStats(msgs=count, bytes=2 * count))
        for count in (1, 2)
    ]
    found = account_sums("A", several)
    assert (found.servers, found.stat.conns, found.stat.sent.bytes) == (2, 3, 6)
    assert account_sums("A", []).servers == 0


def test_pictures_in_pixels(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resvg_py")
    run("stream", "add", "CURVES", "--subjects", "c", "--defaults")
    graph = ("stream", "graph", "CURVES", "--samples", "2", "--png")
    target = tmp_path / "curves.png"
    assert run(*graph, str(target)).code == 0
    picture = target.read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(picture[16:20]) == PNG_ZOOM * (SVG_WIDTH + 2 * SVG_EDGE)
    monkeypatch.setattr(graphs, "find_spec", lambda _name: None)
    refused = run(*graph, str(tmp_path / "none.png"))
    assert (refused.code, refused.err) == (
        1,
        "jsctl: error: --png needs resvg-py: pip install 'jsctl[png]'\n"
        "  --svg draws the same picture and needs nothing\n",
    )
    assert not (tmp_path / "none.png").exists()
