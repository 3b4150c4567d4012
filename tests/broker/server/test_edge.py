"""The edge over real sockets: batches in, outputs performed, an orderly end."""

import asyncio
import gc
import socket
import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace

import bcrypt
import pytest

from jsctl.broker.errors import ConfigError, DiskError, DiskFull
from jsctl.broker.options import (
    ClientLimits,
    ClusterOptions,
    EdgeLimits,
    Listen,
    MonitorOptions,
    Options,
)
from jsctl.broker.server.disk_worker import DiskWorker
from jsctl.broker.server.listener import Listener
from jsctl.broker.server.turns import Clock
from jsctl.broker.turn import Command, ConnKind, DiskBatch
from jsctl.broker.write_options import WriteTimeout
from tests.broker.server.echo_node import Batch
from tests.broker.server.harness import LOCAL, let_go, looking, running
from tests.support.waiting import eventually

OPTIONS = Options(listen=LOCAL)
CLUSTERED = replace(OPTIONS, cluster=ClusterOptions(name="c", host="127.0.0.1", port=-1))


async def test_info_then_ping_pong() -> None:
    async with running(OPTIONS) as server:
        client = await server.client()
        assert '"version": "2.15.1"' in await client.line()
        assert await client.ask("PING") == "PONG"
        accepted = server.node.seen[0].accepted or server.node.seen[1].accepted
        assert accepted[0].kind is ConnKind.CLIENT
        assert (accepted[0].remote_host, accepted[0].local_port) == ("127.0.0.1", server.port())
        await client.close()


@looking
async def test_a_connection_that_ended_holds_nothing() -> None:
    """Not even itself: the collector is not needed to let go of it."""
    async with running(OPTIONS) as server:
        gc.disable()
        try:
            client = await server.client()
            assert await client.line()
            (ended,) = [weakref.ref(one.transport) for one in server.shared.by_id.values()]
            await client.close()
            await let_go(ended)
        finally:
            gc.enable()


async def test_what_arrives_together_is_one_turn() -> None:
    async with running(OPTIONS) as server:
        client = await server.client()
        await client.line()
        turns = len(server.node.seen)
        client.writer.write(b"PING\r\n" * 1000)
        for _ in range(1000):
            assert await client.line() == "PONG"
        assert len(server.node.seen) - turns < 50
        await client.close()


async def test_a_close_comes_after_what_was_written() -> None:
    async with running(OPTIONS) as server:
        client = await server.client()
        await client.line()
        assert await client.ask("QUIT") == "BYE"
        assert await client.line() == ""

        async def closed() -> list[tuple[int, str]]:
            return [pair for inputs in server.node.seen for pair in inputs.closed]

        assert await eventually(closed, "the node hears of the end") == [(1, "Client Closed")]


async def test_a_disk_batch_runs_in_the_disk_thread_and_is_answered() -> None:
    async with running(OPTIONS) as server:
        client = await server.client()
        await client.line()
        assert await client.ask("DISK") == "SYNCED"
        await client.close()


async def test_batches_run_in_order_and_failures_are_told() -> None:
    synced: list[int] = []
    failed: list[tuple[int, str]] = []
    over = asyncio.Event()

    def finished(tickets: list[int], failures: list[tuple[int, str]]) -> None:
        synced.extend(tickets)
        failed.extend(failures)
        if len(synced) + len(failed) == 100:
            over.set()

    worker = DiskWorker(finished, lambda error: None)
    batches = [Batch(ticket) for ticket in range(100)]
    batches[50].failure = DiskError("no disk")
    for batch in batches:
        worker.submit(batch)
    async with asyncio.timeout(30):
        await over.wait()
    assert worker.stop(5)
    assert synced == [ticket for ticket in range(100) if ticket != 50]
    assert failed == [(50, "no disk")]
    assert {name for batch in batches for name in batch.ran} == {"disk"}


async def test_a_full_disk_is_waited_for_and_jobs_do_not_wait_for_the_log() -> None:
    done: list[int] = []
    jobs, all_done = asyncio.Event(), asyncio.Event()

    def finished(tickets: list[int], failures: list[tuple[int, str]]) -> None:
        assert not failures
        done.extend(tickets)
        if -2 in done:
            jobs.set()
        if len(done) == 4:
            all_done.set()

    worker = DiskWorker(finished, lambda error: None)
    batches = [Batch(1), Batch(2), Batch(-1), Batch(-2)]
    batches[0].failure = DiskFull("no room")
    for batch in batches:
        worker.submit(batch)
    async with asyncio.timeout(30):
        await jobs.wait()
        assert done == [-1, -2]
        batches[0].failure = None
        await all_done.wait()
    assert done == [-1, -2, 1, 2] and len(batches[1].ran) == 1
    worker.submit(full := Batch(3))
    full.failure = DiskFull("no room")
    assert worker.stop(5)


async def test_what_makes_room_does_not_wait_for_room() -> None:
    done: list[int] = []
    removed, all_done = asyncio.Event(), asyncio.Event()

    def finished(tickets: list[int], failures: list[tuple[int, str]]) -> None:
        assert not failures
        done.extend(tickets)
        if -4 in done:
            removed.set()
        if len(done) == 4:
            all_done.set()

    class Removal(Batch):
        """Goes before all but the first job."""

        def may_overtake(self, others: Sequence[DiskBatch]) -> bool:
            return self.ticket == -4

    worker = DiskWorker(finished, lambda error: None)
    batches = [Batch(-1), Batch(-2), Removal(-3), Removal(-4)]
    batches[0].failure = DiskFull("no room")
    for batch in batches:
        worker.submit(batch)
    async with asyncio.timeout(30):
        await removed.wait()
        assert done == [-4]
        batches[0].failure = None
        await all_done.wait()
    assert done == [-4, -1, -2, -3]
    assert worker.stop(5)


async def test_the_log_waits_for_one_job_and_not_for_all() -> None:
    done: list[int] = []
    all_done, began, go = asyncio.Event(), threading.Event(), threading.Event()

    def finished(tickets: list[int], failures: list[tuple[int, str]]) -> None:
        assert not failures
        done.extend(tickets)
        if len(done) == 102:
            all_done.set()

    class Held(Batch):
        """Runs until it is let go."""

        def run(self) -> None:
            began.set()
            assert go.wait(30)
            super().run()

    worker = DiskWorker(finished, lambda error: None)
    worker.submit(Held(-1))
    for ticket in range(2, 101):
        worker.submit(Batch(-ticket))
    assert began.wait(30)
    worker.submit(Batch(1))
    worker.submit(Batch(2))
    go.set()
    async with asyncio.timeout(30):
        await all_done.wait()
    # A job runs between batches of the log, so that these do not keep it out either.
    assert done[:4] == [-1, 1, -2, 2]
    assert [ticket for ticket in done if ticket < 0] == [-ticket for ticket in range(1, 101)]
    assert worker.stop(5)


async def test_a_bug_in_the_disk_thread_ends_the_server() -> None:
    crashed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    worker = DiskWorker(lambda synced, failed: None, crashed.set_result)
    batch = Batch(1)
    batch.failure = ValueError("bug")
    worker.submit(batch)
    async with asyncio.timeout(30):
        assert str(await crashed) == "bug"


async def test_a_bug_in_a_turn_ends_the_server() -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with running(OPTIONS) as server:
            server.node.raise_in_turn = ValueError("bug")
            client = await server.client()
            await client.line()
    assert (
        caught.group_contains(ValueError, match="bug")
        if hasattr(caught, "group_contains")
        else "bug" in repr(caught.value)
    )


async def test_a_bug_in_a_reload_ends_the_server_that_would_be_half_changed() -> None:
    told: list[str] = []
    with pytest.raises(BaseExceptionGroup) as caught:
        async with running(OPTIONS) as server:
            server.node.raise_in_reload = ValueError("bug")
            try:
                server.edge.reload(server.edge.try_out(OPTIONS))
            except ConfigError as error:
                told.append(str(error))
    assert told == ["internal error, the server stops"]
    assert "ValueError('bug')" in repr(caught.value)


async def test_passwords_are_verified_in_threads() -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    async with running(OPTIONS) as server:
        client = await server.client()
        await client.line()
        assert await client.ask(f"VERIFY secret {hashed}") == "VERIFIED True"
        assert await client.ask(f"VERIFY other {hashed}") == "VERIFIED False"
        assert await client.ask("VERIFY secret nonsense") == "VERIFIED False"
        await client.close()


async def test_a_deadline_gives_a_turn() -> None:
    async with running(OPTIONS) as server:
        client = await server.client()
        await client.line()
        client.writer.write(b"LATER 60000\r\nLATER 30\r\n")
        assert await client.line() == "NOW"
        await client.close()


async def test_dials_succeed_and_fail() -> None:
    async with running(CLUSTERED) as server:
        client = await server.client()
        await client.line()
        assert await client.ask(f"DIAL {server.port('cluster')}") == "DIALED False"
        assert ConnKind.ROUTE in server.node.kinds.values()
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            assert await client.ask(f"DIAL {unused.getsockname()[1]}") == "NOT DIALED"
        await client.close()


async def test_unsent_bytes_are_reported_and_the_write_deadline_closes() -> None:
    limits = ClientLimits(write_deadline_ns=200_000_000)
    edge = EdgeLimits(pending_bytes_high=100_000, pending_bytes_low=10_000)
    async with running(replace(OPTIONS, client=limits, edge=edge)) as server:
        client = await server.client()
        await client.line()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a real transport
        client.writer.write(b"FLOOD 50000000\r\n")

        async def closed() -> list[tuple[int, str]]:
            return [pair for inputs in server.node.seen for pair in inputs.closed]

        found = await eventually(closed, "the slow consumer is closed")
        assert found == [(1, "Slow Consumer (Write Deadline)")]
        pending = [size for inputs in server.node.seen for _, size in inputs.pending]
        assert max(pending) > 1_000_000
        client.writer.transport.abort()


async def test_a_lame_duck_accepts_nobody() -> None:
    async with running(OPTIONS) as server:
        client = await server.client()
        await client.line()
        server.edge.command(Command.LAME_DUCK)
        assert await client.ask("PING") == "PONG"

        async def refused() -> bool:
            try:
                await server.client()
            except OSError:
                return True
            return False

        await eventually(refused, "the port is closed")
        assert await client.ask("PING") == "PONG"
        await client.close()


def listener(host: str, port: int) -> Listener:
    return Listener(host, port, 1, sys.maxsize, lambda: None)


@pytest.mark.parametrize("host", ["a" * 80 + "é", "é..b", "..é", "a\0b"])
def test_a_host_that_is_none_is_told_as_such(host: str) -> None:
    with pytest.raises(ConfigError, match="Error listening on port: "):
        listener(host, 0)


async def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            listener("127.0.0.1", port)
        assert str(caught.value) == (
            f'Error listening on port: 127.0.0.1:{port}, "listen tcp 127.0.0.1:{port}: '
            'bind: address already in use" (choose another port, or -1 for any free one)'
        )


async def test_a_port_that_another_opens_first_is_named() -> None:
    first, second = listener("127.0.0.1", -1), None
    try:
        first._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        second = listener("127.0.0.1", first.port)
        await first.open(asyncio.Protocol)
        with pytest.raises(ConfigError, match="address already in use"):
            await second.open(asyncio.Protocol)
    finally:
        first.close()
        if second is not None:
            second.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.parametrize("local", ["127.0.0.1", "::1"])
async def test_any_address_takes_ipv4_and_ipv6(host: str, local: str) -> None:
    async with running(Options(listen=Listen(host, -1))) as server:
        _, writer = await asyncio.open_connection(local, server.port())
        writer.close()

        async def remote() -> list[str]:
            return [a.remote_host for inputs in server.node.seen for a in inputs.accepted]

        assert await eventually(remote, "the connection is seen") == [local]


async def test_addresses_are_those_of_the_ports_file() -> None:
    options = replace(CLUSTERED, monitoring=MonitorOptions(port=-1))
    async with running(options) as server:
        assert server.edge.addresses.urls() == {
            "nats": [f"nats://127.0.0.1:{server.port()}"],
            "monitoring": [f"http://127.0.0.1:{server.port('monitor')}"],
            "cluster": [f"nats://127.0.0.1:{server.port('cluster')}"],
        }
        assert server.node.ports["cluster"] == ("127.0.0.1", server.port("cluster"))


async def test_stalls_are_told_but_not_all() -> None:
    async with running(replace(OPTIONS, edge=EdgeLimits(stall_warn_ns=0))) as server:
        client = await server.client()
        await client.line()
        for _ in range(5):
            await client.ask("PING")
        await client.close()
    assert server.output.getvalue().count("A turn took") == 1


def test_the_clock_never_steps_back() -> None:
    wall, steady = [1000], [0]
    clock = Clock(lambda: wall[0], lambda: steady[0])
    assert clock.now_ns() == 1000
    wall[0], steady[0] = 500, 100
    assert clock.now_ns() == 1050
    wall[0], steady[0] = 1040, 200
    assert clock.now_ns() == 1100
    wall[0], steady[0] = 9000, 300
    assert clock.now_ns() == 9000


@pytest.mark.slow
@pytest.mark.parametrize("timeout", [WriteTimeout.CLOSE, WriteTimeout.RETRY])
async def test_who_takes_a_little_is_closed_or_kept(timeout: WriteTimeout) -> None:
    limits = ClientLimits(write_deadline_ns=500_000_000, write_timeout=timeout)
    edge = EdgeLimits(pending_bytes_high=100_000, pending_bytes_low=10_000)
    async with running(replace(OPTIONS, client=limits, edge=edge)) as server:
        client = await server.client()
        await client.line()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a real transport
        client.writer.write(b"FLOOD 200000000\r\n")

        async def closed() -> bool:
            return any(inputs.closed for inputs in server.node.seen)

        async def waits() -> bool:
            return any(inputs.pending for inputs in server.node.seen)

        await eventually(waits, "it does not keep up")
        raw = client.writer.get_extra_info("socket")
        taken, begun = 0, asyncio.get_running_loop().time()

        async def takes_a_little() -> bool:
            nonlocal taken
            taken += len(socket.socket.recv(raw._sock, 1 << 20))
            late = asyncio.get_running_loop().time() - begun > 3 * 0.5
            return late or await closed()

        await eventually(takes_a_little, "three deadlines, or the end")
        assert taken < 200_000_000
        assert await closed() is (timeout is WriteTimeout.CLOSE)
        client.writer.transport.abort()
