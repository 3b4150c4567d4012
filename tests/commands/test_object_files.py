"""Objects that are written where no file is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.testing import Broker, BrokerFactory

pytestmark = pytest.mark.processes
CONTENT = "a line\n"


@pytest.fixture(scope="module")
def broker(jsctl_session_broker: BrokerFactory) -> Iterator[Broker]:
    yield jsctl_session_broker("-js")


def test_a_device_stays_what_it_is(broker: Broker, tmp_path: Path) -> None:
    place, source = tmp_path / "null", tmp_path / "source"
    place.symlink_to(os.devnull)
    source.write_text(CONTENT)
    server = ("-s", broker.url)
    assert main([*server, "object", "add", "O"]) == 0
    assert main([*server, "object", "put", "O", str(source), "--name", "it"]) == 0
    assert main([*server, "object", "get", "O", "it", "--output", str(place), "-f"]) == 0
    assert place.is_symlink() and sorted(tmp_path.iterdir()) == [place, source]


def test_what_is_replaced_is_asked_for_however_it_is_written(
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`./it` is stored as `it`."""
    monkeypatch.chdir(tmp_path)
    Path("it").write_text(CONTENT)
    server = ("-s", broker.url)
    assert main([*server, "object", "add", "R"]) == 0
    assert main([*server, "object", "put", "R", "it"]) == 0
    assert main([*server, "object", "put", "R", "./it"]) == 1
    assert "cannot ask for confirmation" in capsys.readouterr().err
    assert main([*server, "object", "put", "R", "./it", "-f"]) == 0


@pytest.mark.parametrize(("size", "code"), [(2**40, 1), (2**63 - 1, 1), (2**32 - 1, 0)])
def test_a_chunk_has_a_size_that_fits(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int, code: int
) -> None:
    source = tmp_path / "source"
    source.write_text(CONTENT)
    server = ("-s", broker.url)
    assert main([*server, "object", "add", f"C{size}"]) == 0
    words = [*server, "object", "put", f"C{size}", str(source), "--name", "it"]
    assert main([*words, "--chunk-size", str(size)]) == code
    assert "Traceback" not in capsys.readouterr().err
