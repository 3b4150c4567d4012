"""The pid file and the ports file."""

import json
import os
from pathlib import Path

import pytest

from jsctl.broker.errors import ConfigError
from jsctl.broker.server.files import Addresses, RunFiles


def test_addresses_become_urls_that_this_machine_can_use() -> None:
    bound = {"nats": ("0.0.0.0", 1), "monitoring": ("::", 2), "cluster": ("::1", 3)}
    assert Addresses(bound).urls() == {
        "nats": ["nats://127.0.0.1:1"],
        "monitoring": ["http://[::1]:2"],
        "cluster": ["nats://[::1]:3"],
    }


def test_files_are_written_and_removed(tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path / "pid"), str(tmp_path))
    files.write_pid()
    files.write_ports(Addresses({"nats": ("127.0.0.1", 5)}))
    assert (tmp_path / "pid").read_text() == str(os.getpid())
    ports = tmp_path / f"nats-server_{os.getpid()}.ports"
    assert json.loads(ports.read_text()) == {"nats": ["nats://127.0.0.1:5"]}
    files.remove()
    assert list(tmp_path.iterdir()) == []
    RunFiles("", "").write_pid()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path / "no/pid"), "")
    for write in (files.check, files.write_pid):
        with pytest.raises(ConfigError, match="could not write pid file: No such file"):
            write()
    with pytest.raises(ConfigError, match="could not write ports file: No such file"):
        RunFiles("", str(tmp_path / "no")).check()
    with pytest.raises(ConfigError, match="could not write pid file: Is a directory"):
        RunFiles(str(tmp_path), "").check()


def test_a_look_whether_they_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path / "pid"), str(tmp_path))
    files.check()
    files.remove()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "pid").write_text("1")
    files.check()
    assert (tmp_path / "pid").read_text() == "1"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("written", [False, True])
def test_the_pid_file_of_another_server_stays(written: bool, tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path / "pid"), "")
    if written:
        files.write_pid()
    (tmp_path / "pid").write_text("1")
    files.remove()
    assert (tmp_path / "pid").read_text() == "1"


def test_what_cannot_be_removed_stays(tmp_path: Path) -> None:
    """Who ends has more to do; who is reloaded has taken all else already."""
    for change in (False, True):
        place = tmp_path / "run"
        place.mkdir()
        files = RunFiles(str(place / "pid"), str(place))
        files.write_pid()
        files.write_ports(Addresses())
        place.rename(tmp_path / f"moved{change}")
        place.write_text("no directory")
        if change:
            files.change("", str(tmp_path), Addresses())
            assert (tmp_path / f"nats-server_{os.getpid()}.ports").exists()
        files.remove()
        place.unlink()
