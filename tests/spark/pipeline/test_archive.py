"""Archives: export, verify, restore; interrupted and gone on with; damage is named."""

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jsctl.client.manager import Manager
from jsctl.spark.pipeline.archives.restore import Rule, mapped
from jsctl.spark.pipeline.layout import BatchDirectory
from jsctl.spark.pipeline.progress import Display
from jsctl.testing import Broker
from tests.spark.pipeline.conftest import (
    KINDS,
    Message,
    Result,
    Run,
    make_stream,
    on,
    orders,
    publish,
    settings_of,
    stored,
    write_spec,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")
SHORT, LONG = 20_000, 1_000_000


def with_headers(stream: str, number: int) -> list[Message]:
    """Messages of many shapes: no body, odd bytes, headers of the server's own names."""
    return [
        (
            f"{stream}.{n % 13}.{n % 3}",
            b"" if n % 50 == 0 else bytes([n % 256]) * (n % 40),
            {"Nats-Msg-Id": f"id-{n}", "Trace": f"{n:x}", "Text": "größe" if n % 2 else "a: b"},
        )
        for n in range(number)
    ]


def export_restore_verify(server: Broker, cli: Run, name: str, path: Path, number: int) -> None:
    make_stream(server, name)
    publish(server, with_headers(name, number))
    on(server, lambda manager: manager.purge(name, seq=101))
    there, words = str(path / "archive"), ("-s", server.url)
    chunk = str(number // 2 - 100)
    done = cli("pipeline", "export", name, there, "--chunk", chunk, "-j", *words)
    assert done.code == 0, done.err
    assert (done.json["rows"], done.json["batches"]) == (number - 100, 3)
    rule = f"{name}.>={name}C.>"
    done = cli("pipeline", "restore", there, f"{name}C", "--subject-map", rule, "-j", *words)
    assert done.code == 0, done.err
    assert (done.json["rows"], done.json["kept"]) == (number - 100, True)
    done = cli("pipeline", "verify", there, f"{name}C", "-j", *words)
    assert (done.code, done.json["good"], done.json["rows"]) == (0, True, number - 100)
    info = on(server, lambda manager: manager.stream_info(f"{name}C"))
    assert (info.state.first_seq, info.state.last_seq) == (101, number), "sequences are kept"


@pytest.mark.timeout(240)
def test_export_restore_verify(server: Broker, cli: Run, fresh: str, tmp_path: Path) -> None:
    export_restore_verify(server, cli, fresh, tmp_path, SHORT)


@pytest.mark.spark_long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", list(KINDS))
def test_export_restore_verify_of_a_million(
    kind: str, cli: Run, fresh: str, tmp_path: Path
) -> None:
    with KINDS[kind]("-js", name="one") as server:
        export_restore_verify(server, cli, fresh, tmp_path, LONG)


@pytest.fixture
def archive(broker: Broker, cli: Run, fresh: str, tmp_path: Path) -> Path:
    """A stream of 300 messages, two of them deleted, in two batches."""
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 300))
    for seq in (7, 200):
        on(broker, partial(delete, fresh, seq))
    path = tmp_path / "archive"
    done = cli("pipeline", "export", fresh, str(path), "--chunk", "150", "-s", broker.url)
    assert done.code == 0, done.err
    return path


async def delete(stream: str, seq: int, manager: Manager) -> None:
    await manager.delete_message(stream, seq)


def verify(cli: Run, broker: Broker, path: Path, *stream: str) -> Result:
    return cli("pipeline", "verify", str(path), *stream, "-j", "-s", broker.url)


def test_an_export_adds_what_is_new(broker: Broker, cli: Run, fresh: str, archive: Path) -> None:
    words = ("pipeline", "export", fresh, str(archive), "-j", "-s", broker.url)
    assert cli(*words).json["batches"] == 0
    publish(broker, orders(fresh, 5))
    found = cli(*words).json
    assert (found["first_seq"], found["rows"], found["rows_in_all"]) == (301, 5, 303)
    merged = cli("pipeline", "compact", str(archive), "-j").json
    assert (merged["batches"], merged["files_after"]) == (3, 1)
    assert verify(cli, broker, archive, fresh).json["good"]
    publish(broker, orders(fresh, 2))
    assert cli(*words).json["rows"] == 2, "goes on behind what was merged"
    assert verify(cli, broker, archive, fresh).json["good"]


def test_an_interrupted_export_goes_on(broker: Broker, cli: Run, fresh: str, archive: Path) -> None:
    """As a kill leaves it: one batch there, another one half-written beside it."""
    last = archive / "batch=1"
    staging = archive / "_staging"
    staging.mkdir(exist_ok=True)
    last.rename(staging / "batch=1")
    next((staging / "batch=1").glob("*.parquet")).write_bytes(b"PAR1 half of a file")
    found = cli("pipeline", "export", fresh, str(archive), "-j", "-s", broker.url).json
    assert (found["first_seq"], found["rows"]) == (151, 149)
    assert verify(cli, broker, archive, fresh).json["good"]


def test_another_stream_does_not_get_into_an_archive(
    broker: Broker, cli: Run, fresh: str, archive: Path
) -> None:
    on(broker, lambda manager: manager.delete_stream(fresh))
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 3))
    done = cli("pipeline", "export", fresh, str(archive), "-s", broker.url)
    assert done.code == 1
    assert "was written by another archive" in done.err


def test_a_stream_that_differs_is_named(
    broker: Broker, cli: Run, fresh: str, archive: Path
) -> None:
    on(broker, lambda manager: manager.delete_message(fresh, 42))
    done = verify(cli, broker, archive, fresh)
    assert (done.code, done.json["differing"]) == (1, 1)
    assert done.json["differences"] == [{"seq": 42, "kind": "missing", "where": fresh}]


def test_a_damaged_archive_is_named(
    spark: "SparkSession", broker: Broker, cli: Run, archive: Path
) -> None:
    import pyarrow.parquet as parquet

    file = BatchDirectory(archive).files()[1]
    whole = archive / file.path
    table = parquet.read_table(whole)
    subjects = table["subject"].to_pylist()
    subjects[3] += "x"
    parquet.write_table(
        table.set_column(table.column_names.index("subject"), "subject", [subjects]), whole
    )
    found = verify(cli, broker, archive).json
    assert not found["good"]
    assert "bytes, not" in found["problems"][0]
    manifest = archive / "_manifest.json"
    text = manifest.read_text().replace(
        f'"bytes": {file.bytes}', f'"bytes": {whole.stat().st_size}'
    )
    manifest.write_text(text)
    found = verify(cli, broker, archive).json
    assert found["problems"] == ["batch 1: its messages are not those that were written"]
    shutil.rmtree(archive / "batch=1")
    assert "is missing" in verify(cli, broker, archive).json["problems"][0]


def test_a_restore_goes_on_and_refuses_strangers(
    broker: Broker, cli: Run, fresh: str, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--subject-map", f"{fresh}.>={fresh}C.>", "-j", "-s", broker.url)
    done = cli("pipeline", "restore", str(archive), fresh, *words)
    assert (done.code, "no restore has put there" in done.err) == (1, True)
    restore = ("pipeline", "restore", str(archive), f"{fresh}C", *words)
    plan = cli(*restore, "--dry-run").json
    assert (plan["made"], plan["kept"], plan["rows"]) == (True, False, 298)
    stop_after_a_hundred(monkeypatch)
    with pytest.raises(ZeroDivisionError):
        cli(*restore)
    monkeypatch.undo()
    before = stored(broker, f"{fresh}C")
    assert 100 <= before < 298
    rows = cli(*restore).json["rows"]
    assert 298 - before - 40 <= rows <= 298 - before, "only what is missing; some were on their way"
    assert verify(cli, broker, archive, f"{fresh}C").json["good"]
    on(broker, lambda manager: manager.delete_message(f"{fresh}C", 298))
    done = cli(*restore)
    assert (done.code, "is deleted; the stream still knows its id" in done.err) == (1, True)


def stop_after_a_hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore breaks off when so many messages are acknowledged."""
    monkeypatch.setattr("jsctl.spark.pipeline.archives.restore.IN_FLIGHT_MAX", 40)

    def told(_display: Display, _name: str, completed: int, _total: int) -> None:
        1 / (completed < 100)

    monkeypatch.setattr(Display, "advance", told)


def test_a_missing_archive_and_stream(broker: Broker, cli: Run, fresh: str, tmp_path: Path) -> None:
    done = cli("pipeline", "verify", str(tmp_path / "none"))
    assert (done.code, "has no _manifest.json" in done.err) == (1, True)
    done = cli("pipeline", "export", f"{fresh}NO", str(tmp_path / "a"), "-s", broker.url)
    assert (done.code, "not found" in done.err) == (1, True)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("rule", "subject", "expected"),
    [
        ("a.>=b.>", "a.x.y", "b.x.y"),
        ("a.>=b.c.>", "a.x", "b.c.x"),
        ("a.*.c=z.*", "a.b.c", "z.b"),
        ("a.*.c=z.*", "a.b.d", "a.b.d"),
        ("a.*=b.*", "a.b.c", "a.b.c"),
        ("a=b", "a", "b"),
        ("a.*.*.>=*.x.*.>", "a.1.2.3.4", "1.x.2.3.4"),
    ],
)
def test_subject_maps(rule: str, subject: str, expected: str) -> None:
    assert mapped(subject, [Rule.parse(rule)]) == expected


@pytest.mark.parametrize("rule", ["a", "a=", "=b", "a.*=b", "a.>=b.*", "a..b=c"])
def test_bad_subject_maps(rule: str, broker: Broker, cli: Run, tmp_path: Path) -> None:
    done = cli("pipeline", "restore", str(tmp_path), "X", "--subject-map", rule)
    assert (done.code, "is not FROM=TO" in done.err) == (1, True)
    assert settings_of(broker).urls


def test_an_archive_is_read_once_also_when_it_grows_and_not_after_compaction(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    import pyarrow.dataset as dataset

    there, words = str(tmp_path / "archive"), ("-s", broker.url)
    spec = write_spec(
        tmp_path,
        f"""\
name: {fresh}
source: {{archive: {there}}}
decode: {{format: json, schema: "id BIGINT"}}
transform: SELECT seq, id FROM input
sink: {{type: parquet, path: out}}
trigger: once
checkpoint: ckpt
""",
    )
    make_stream(broker, fresh)
    for number in (30, 20):
        publish(broker, orders(fresh, number))
        assert cli("pipeline", "export", fresh, there, *words).code == 0
        done = cli("pipeline", "run", str(spec), *words)
        assert done.code == 0, done.err
    found = dataset.dataset(tmp_path / "out", partitioning="hive").to_table(["seq"])
    assert sorted(found["seq"].to_pylist()) == list(range(1, 51))
    assert cli("pipeline", "compact", there, *words).code == 0
    done = cli("pipeline", "run", str(spec), *words)
    assert (done.code, "was compacted since" in done.err) == (1, True)
    assert dataset.dataset(tmp_path / "out", partitioning="hive").count_rows() == 50
