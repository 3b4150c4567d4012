"""What options leave open and only the machine can tell: names, directories, room, limits."""

import base64
import os
import resource
import secrets
import sys
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jsctl.broker.errors import ConfigError
from jsctl.broker.options import GIB, MIB, UNLIMITED, JetStreamOptions, Options
from jsctl.dataclass import replace

SERVER_KEY_PREFIX = 13 << 3
"""What makes a public nkey begin with N."""
CRC_POLYNOMIAL = 0x1021
CGROUP_MEMORY = Path("/sys/fs/cgroup/memory.max")
FILE_BYTES_MIN = 256 * MIB
"""A file of the log holds all that one turn writes, which atomic batches are a part of."""
KEPT_PART = 8
"""Connections leave this part of the files that the process may have open to the store."""
KEPT_MIN, KEPT_MAX = 64, 8192
"""In any case so many, and no more of them."""
STORE_FALLBACK_BYTES = 1024 * GIB
BLOCK_BYTES = 512
"""What sizes on a disk are counted in."""
SHARE = 3 / 4
"""Of memory and free disk that JetStream may use when no limit is set."""
DRAWN_BYTES = 4096
"""Of chance that the system is asked for at a time."""
SMALL_MAX = 1 << 32
"""Up to here the rest of a drawn number is as even as matters: off by less than one in 2^32."""


def complete(options: Options, server_id: str) -> Options:
    """Options with the values that only a process can know: its name, temporary directory."""
    jetstream = options.jetstream
    if jetstream.enabled and not jetstream.store_dir:
        default = Path(os.environ.get("TMPDIR", "/tmp")) / "nats"
        jetstream = replace(jetstream, store_dir=str(default))
        note = f"Temporary storage directory used, data could be lost on system reboot: {default}"
        options = replace(options, warnings=(*options.warnings, note))
    cluster = options.cluster
    if options.gateway.name:
        cluster = replace(cluster, name=options.gateway.name)
    elif options.clustered and not cluster.name:
        cluster = replace(cluster, name=server_id[-22:])
    name = options.server_name or server_id
    return replace(options, server_name=name, jetstream=jetstream, cluster=cluster)


def raise_limits() -> None:
    """Raise soft limits to the hard ones: every connection is a file, and files of the store are
    as large as what is written in one go."""
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
        soft, hard = resource.getrlimit(limit)
        if soft != hard:
            resource.setrlimit(limit, (hard, hard))


def check_limits(options: Options) -> None:
    """Raises ConfigError if a server with these could not write what one turn of it may need:
    nothing behind it would be written either, however long that waits."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if options.jetstream.enabled and 0 <= limit < FILE_BYTES_MIN:
        raise ConfigError(
            f"files may not be larger than {limit} bytes, and those of JetStream may need more",
            place="ulimit -f",
            remedy=f"allow {FILE_BYTES_MIN} bytes, or start without JetStream",
        )


def descriptor_max(share: int = 1) -> int:
    """Up to which file descriptor files may be opened that somebody else wants, so that those are
    left which the server needs; `share` 2: so that half of them are.

    A connection is a file before anybody knows whose it is. Without any left the store cannot go
    on with its log, which ends the server, and the loop cannot even tell of it.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return limit - min(max(limit // KEPT_PART, KEPT_MIN), KEPT_MAX) // share


def store_path(jetstream: JetStreamOptions) -> Path:
    """Where JetStream's files lie."""
    return Path(jetstream.store_dir) / "jetstream"


def with_limits(options: Options) -> Options:
    """Options with JetStream's limits in bytes, where it is enabled."""
    jetstream = options.jetstream
    if not jetstream.enabled:
        return options
    memory, store = jetstream_limits(jetstream, store_path(jetstream))
    jetstream = replace(
        jetstream,
        memory_bytes_max=memory,
        store_bytes_max=store,
        memory_is_found=jetstream.memory_bytes_max == UNLIMITED,
        store_is_found=jetstream.store_bytes_max == UNLIMITED,
    )
    return replace(options, jetstream=jetstream)


def keep_limits(options: Options, before: Options) -> Options:
    """Options of a server that runs already: what its machine had room for at its start counts."""
    jetstream, known = options.jetstream, before.jetstream
    memory, store = jetstream.memory_bytes_max, jetstream.store_bytes_max
    jetstream = replace(
        jetstream,
        memory_bytes_max=known.memory_bytes_max if memory == UNLIMITED else memory,
        store_bytes_max=known.store_bytes_max if store == UNLIMITED else store,
        memory_is_found=memory == UNLIMITED,
        store_is_found=store == UNLIMITED,
    )
    return replace(options, jetstream=jetstream)


def check_room(options: Options) -> None:
    """Raises ConfigError if the accounts of a file may store more together than a server alone has;
    those of an operator are looked at one by one."""
    from jsctl.broker.jetstream.allotting import overcommitted  # loaded with JetStream

    if options.operator.enabled or not options.jetstream.enabled:
        return
    if why := overcommitted(options):
        raise ConfigError(
            f"Can't start JetStream: Error enabling jetstream on configured accounts: {why}",
            remedy="lower limits of accounts, or raise those of the jetstream block",
        )


def jetstream_limits(jetstream: JetStreamOptions, path: Path) -> tuple[int, int]:
    """(memory, store) in bytes: what is set, or three quarters of what the machine has; of the disk
    those of what is free, and what the store takes already: a restart takes no room away."""
    memory, store = jetstream.memory_bytes_max, jetstream.store_bytes_max
    if memory == UNLIMITED:
        memory = int(machine_memory() * SHARE)
    if store == UNLIMITED:
        try:
            found = os.statvfs(path)
            free = int(found.f_bavail * found.f_frsize * SHARE)
            store = free + stored_bytes(path)
        except OSError:
            store = STORE_FALLBACK_BYTES
    return (memory, store)


def stored_bytes(path: str | Path) -> int:
    """What the files below a directory take on the disk; what goes meanwhile is left out."""
    total = 0
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    total += stored_bytes(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
    return total


def machine_memory() -> int:
    """Bytes of memory that this process may use."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = CGROUP_MEMORY.read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdecimal() else total


def new_server_id() -> str:
    """A fresh id in the form of a server's public nkey."""
    raw = bytes([SERVER_KEY_PREFIX]) + secrets.token_bytes(32)
    crc = 0
    for byte in raw:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ (CRC_POLYNOMIAL if crc & 0x8000 else 0)
        crc &= 0xFFFF
    return base64.b32encode(raw + crc.to_bytes(2, "little")).decode().rstrip("=")


class Chance:
    """Numbers of the system's generator, some hundred of them at a call: the name of each stream
    takes a dozen, and a call of the system for each took as long as the rest of the name."""

    __slots__ = ("_drawn",)

    def __init__(self) -> None:
        self._drawn: Iterator[int] = iter(())

    def below(self, count: int) -> int:
        """A number in [0, count)."""
        if count > SMALL_MAX:
            return secrets.randbelow(count)
        for number in self._drawn:
            return number % count
        self._drawn = iter(array("Q", os.urandom(DRAWN_BYTES)))
        return next(self._drawn) % count
