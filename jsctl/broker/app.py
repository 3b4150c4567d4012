"""The composition root: command line -> options -> disk and node -> a server that lives.

The only module that knows all parts and reads the environment. What it prints is what operators,
supervisors and test tools of nats-server look for.
"""

import asyncio
import logging
import os
import secrets
import stat
import sys
from collections.abc import MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl import OWNER, __version__
from jsctl.broker import lazy
from jsctl.broker.conf.check import check
from jsctl.broker.conf.flags import TLS_HELP, Parsed, UsageError, help_text, parse_flags
from jsctl.broker.conf.override import override
from jsctl.broker.errors import BrokerError, ConfigError, ConfigErrors
from jsctl.broker.lifetime import Leave, NodeMaker, Server
from jsctl.broker.machine import Chance, check_limits, descriptor_max, raise_limits
from jsctl.broker.options import COMPATIBLE_VERSION, Options
from jsctl.broker.ports import Disk
from jsctl.broker.server import signals
from jsctl.broker.server.looks import made_looks
from jsctl.broker.server.no_disk import NoDisk
from jsctl.broker.server.tls import dialing_context, server_context
from jsctl.broker.server.turns import NodeLike

if TYPE_CHECKING:
    from jsctl.broker.conf.mapper import LoadedConfig
    from jsctl.broker.server import time_zones
else:
    time_zones = lazy.module("jsctl.broker.server.time_zones")

PROGRAM = "jsctl broker"


def main(
    arguments: Sequence[str], make_node: NodeMaker | None = None, leave: Leave | None = None
) -> int:
    """Run the `broker` command; the exit status is returned.

    `leave` is called where a server has ended in good order and has nothing to do but to let its
    clients go. Who sees his connection end counts on the process being gone, so that is left to
    the system, which closes sockets after everything else of a process.
    """
    try:
        parsed = parse_flags(arguments)
        return _dispatch(parsed, make_node or real_node, leave or stay)
    except UsageError as error:
        print(error, file=sys.stderr)
        print(f"\n{help_text(PROGRAM)}", file=sys.stderr)
    except ConfigErrors as error:
        for each in error.errors:
            print(f"{PROGRAM}: {each}", file=sys.stderr)
    except BrokerError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
    return 1


def stay(status: int) -> None:
    """A `Leave` for a process that goes on after its server."""


def _dispatch(parsed: Parsed, make_node: NodeMaker, leave: Leave) -> int:
    first = parsed.words[0].lower() if parsed.words else ""
    if first not in ("", "version", "help"):
        raise ConfigError(f'unrecognized command: "{parsed.words[0]}"', remedy="see --help")
    if parsed.switch("version") or first == "version":
        print(f"nats-server: v{COMPATIBLE_VERSION} (jsctl {__version__})")
        return 0
    if parsed.switch("help") or first == "help":
        print(help_text(PROGRAM))
        return 0
    if parsed.switch("help_tls"):
        print(TLS_HELP)
        return 0
    if (command := parsed.text("signal")) is not None:
        signals.send(command)
        return 0
    if parsed.switch("test"):
        return test_config(parsed)
    options = read_options(parsed)
    errors = check(options)
    if errors:
        raise ConfigErrors(errors)
    raise_limits()
    check_limits(options)
    looks = made_looks()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(looks)) as runner:
        again = partial(_read_again, parsed)
        server = Server(options, again, make_node, leave, looks, owner_of(os.environ))
        return runner.run(server.run())


def owner_of(environ: MutableMapping[str, str]) -> int | None:
    """The pipe whose other end whoever started this process has, if it is to end with it.

    Raises ConfigError for what is no pipe.
    """
    text = environ.pop(OWNER, "")
    if not text:
        return None
    try:
        mode = os.fstat(int(text)).st_mode
    except (ValueError, OverflowError, OSError):
        mode = 0
    if not stat.S_ISFIFO(mode):
        raise ConfigError(f"{text!r} is no open pipe", place=OWNER, remedy="name one by its number")
    return int(text)


def read_options(parsed: Parsed) -> Options:
    """The configuration file, if there is one, under the flags. Raises ConfigError."""
    path = parsed.text("config")
    return override(_load(path).options if path else Options(), parsed)


def _read_again(parsed: Parsed) -> Options:
    """For a reload. Raises ConfigError."""
    if not parsed.text("config"):
        raise ConfigError("can only reload config when a file is provided using -c or --config")
    return read_options(parsed)


def _load(path: str) -> "LoadedConfig":
    from jsctl.broker.conf.mapper import load  # loaded late: flags alone need no grammar

    return load(path, os.environ)


def test_config(parsed: Parsed) -> int:
    """`-t`: whether a server starts with this file and these flags; warnings count as errors."""
    path = parsed.text("config")
    if not path:
        raise ConfigError("no configuration file to test", remedy="add -c FILE")
    loaded = _load(path)
    if loaded.strict_errors:
        raise ConfigErrors(list(loaded.strict_errors))
    options = override(loaded.options, parsed)
    errors = check(options)
    if errors:
        raise ConfigErrors(errors)
    from jsctl.broker.node.node import try_out  # loaded late: version and help need none of it

    try_out(options, secrets.randbelow)
    dialed = [one.tls for one in options.leafnodes.remotes]
    for tls in (options.tls, options.cluster.tls, options.leafnodes.tls, options.gateway.tls):
        if tls is not None and tls.cert_file:
            server_context(tls)
    for tls in filter(None, dialed + [one.tls for one in options.gateway.remotes]):
        dialing_context(tls)
    for warning in options.warnings:
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    digest = options.config_digest
    print(f"{PROGRAM}: configuration file {path} is valid ({digest})", file=sys.stderr)
    return 0


def real_node(options: Options, server_id: str, store: Path | None) -> NodeLike:
    """The broker's node on a real disk. Raises DiskError if another process has the directory."""
    disk, drawn = open_disk(store), secrets.token_hex(16)
    making = None
    if store is not None:
        from jsctl.broker.beside import begin_store

        names, length = (options.server_name, options.cluster.name), options.raft.log_segment_bytes
        making = begin_store(disk, *names, drawn, length)
    from jsctl.broker.node import Node  # loaded late: version and help need none of it

    if making is not None:
        lazy.load("jsctl.broker.node.jetstream")
    return Node(
        options,
        disk=disk,
        jitter=Chance().below,
        server_id=server_id,
        incarnation=drawn,
        zones=lambda name, at: time_zones.offset(name, at),
        new_store=making.result() if making is not None else None,
    )


def open_disk(store: Path | None) -> Disk:
    """JetStream's directory, locked for this process, with files where there should be some; an
    empty disk without JetStream. Raises DiskError."""
    if store is None:
        return NoDisk()
    from jsctl.broker.store.disk import RealDisk
    from jsctl.broker.store.tree.strangers import settle

    disk = RealDisk(store, descriptor_max(2))
    disk.lock()
    for text in settle(disk):
        logging.getLogger(__name__).error(text)
    return disk
