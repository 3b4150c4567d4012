"""The pid file and the ports file, by which supervisors and test tools find a server."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

from jsctl.broker.conf.units import host_text
from jsctl.broker.errors import ConfigError
from jsctl.dataclass import dataclass
from jsctl.files import drafted, file_at

PORTS_FILE_PREFIX = "nats-server_"
"""The name that tools look for, whatever the program is called."""
ANY_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}


@dataclass(slots=True)
class Addresses:
    """Where the server listens: kind -> (host, port). Kinds are those of the ports file."""

    bound: dict[str, tuple[str, int]] = field(default_factory=dict)
    schemes: dict[str, str] = field(
        default_factory=lambda: {"nats": "nats", "monitoring": "http", "cluster": "nats"}
    )

    def urls(self) -> dict[str, list[str]]:
        """kind -> URLs that a process on this machine can use."""
        found: dict[str, list[str]] = {}
        for kind, (host, port) in self.bound.items():
            local = ANY_HOSTS.get(host)
            where = f"{local}:{port}" if local else host_text(host, port)
            found[kind] = [f"{self.schemes[kind]}://{where}"]
        return found


class RunFiles:
    """Written when the server is ready, removed when it ends."""

    def __init__(self, pid_file: str, ports_file_dir: str) -> None:
        self._pid_file, self._ports_file = _places(pid_file, ports_file_dir)
        self._wrote_pid = False

    def check(self) -> None:
        """Raises ConfigError if one cannot be written; nothing is left there."""
        for path, what in ((self._pid_file, "pid file"), (self._ports_file, "ports file")):
            if path is not None:
                with suppress(_Tried), _told(path, what), drafted(path):
                    raise _Tried

    def write_pid(self) -> None:
        """Write the pid without a line break. Raises ConfigError."""
        if self._pid_file is not None:
            _replace(self._pid_file, str(os.getpid()), "pid file")
            self._wrote_pid = True

    def write_ports(self, addresses: Addresses) -> None:
        """Write the ports file, whole or not at all. Raises ConfigError."""
        if self._ports_file is not None:
            text = json.dumps(addresses.urls(), separators=(",", ":"))
            _replace(self._ports_file, text, "ports file")

    def change(self, pid_file: str, ports_file_dir: str, addresses: Addresses) -> None:
        """Write them at other places. An old ports file goes, an old pid file stays, as with
        nats-server. Raises ConfigError if one cannot be written."""
        before = self._pid_file, self._ports_file
        self._pid_file, self._ports_file = _places(pid_file, ports_file_dir)
        if self._pid_file != before[0]:
            self.write_pid()
        if self._ports_file != before[1]:
            if before[1] is not None:
                _remove(before[1])
            self.write_ports(addresses)

    def remove(self) -> None:
        """Remove both; no error when missing, or when that is not allowed any more.

        A pid file that another server has written stays: one whose port is taken finds that of the
        server which has it.
        """
        if self._pid_file is not None and self._wrote_pid and _is_ours(self._pid_file):
            _remove(self._pid_file)
        if self._ports_file is not None:
            _remove(self._ports_file)


class _Tried(Exception):
    """Writing would have worked."""


def _is_ours(path: Path) -> bool:
    try:
        return file_at(path) is not None and path.read_text() == str(os.getpid())
    except (OSError, ValueError):
        return False


def _remove(path: Path) -> None:
    """A server that ends has more to do, and one that is reloaded has done it."""
    with suppress(OSError):
        path.unlink()


def _places(pid_file: str, ports_file_dir: str) -> tuple[Path | None, Path | None]:
    name = f"{PORTS_FILE_PREFIX}{os.getpid()}.ports"
    ports_file = Path(ports_file_dir) / name if ports_file_dir else None
    return Path(pid_file) if pid_file else None, ports_file


def _replace(path: Path, text: str, what: str) -> None:
    with _told(path, what), drafted(path) as file:
        file.write(text.encode())


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"could not write {what}: {error.strerror}",
            place=str(path),
            remedy="choose a directory that exists and can be written",
        ) from error
