"""Files that are written whole, and what is no file."""

import os
import threading
from pathlib import Path

import pytest

from jsctl.errors import JsctlError
from jsctl.files import file_at, write_whole


def test_a_device_stays_what_it_is(tmp_path: Path) -> None:
    """Through a link, so that a mistake takes only that one away."""
    place = tmp_path / "null"
    place.symlink_to(os.devnull)
    write_whole(place, "nobody reads this")
    assert place.is_symlink() and file_at(place) is None
    assert list(tmp_path.iterdir()) == [place]


def test_a_pipe_gets_what_is_written(tmp_path: Path) -> None:
    place = tmp_path / "pipe"
    os.mkfifo(place)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(place.read_bytes()))
    reader.start()
    write_whole(place, "a line")
    reader.join(30)
    assert found == [b"a line"] and file_at(place) is None


@pytest.mark.parametrize("there", [False, True])
def test_a_file_is_replaced(tmp_path: Path, *, there: bool) -> None:
    place = tmp_path / "file"
    if there:
        place.write_text("old")
    write_whole(place, "new")
    assert place.read_text() == "new" and file_at(place) == place


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    place = tmp_path / "link"
    place.symlink_to("file")
    for text in ("new", "newer"):  # The first one finds no file behind the link.
        write_whole(place, text)
        assert place.is_symlink() and (tmp_path / "file").read_text() == text


def test_standard_output_is_a_device_where_it_leads_into_a_file(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        assert file_at(Path(f"/proc/self/fd/{log.fileno()}")) is None
    assert file_at(Path("/dev/no such thing")) is not None


@pytest.mark.parametrize("name", ["", ".", "..", "/", "folder"])
def test_a_folder_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(JsctlError, match="is a directory"):
        write_whole(Path(name), "text")
    assert list(tmp_path.rglob("*")) == [tmp_path / "folder"]
