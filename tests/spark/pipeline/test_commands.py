"""The commands around a run: init, doctor, status and stop of a pipeline that runs elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest

from jsctl.testing import Broker
from tests.spark.pipeline.conftest import Run, make_stream, orders, publish, quick_java, write_spec
from tests.support.waiting import wait_for

START_S = 240.0
SPEC = """\
name: NAME
source: {stream: NAME}
transform: SELECT seq FROM input
sink: {type: parquet, path: out}
trigger: {every: 300ms}
checkpoint: ckpt
"""


def test_init_does_not_overwrite(cli: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "a.yaml")
    words = ("pipeline", "init", "a", "--output", path)
    assert cli(*words).code == 0
    assert cli("pipeline", "validate", path).out.startswith(f"{path} is valid")
    done = cli(*words)
    assert (done.code, "exists already" in done.err) == (1, True)
    assert cli(*words, "--force").code == 0


def test_the_doctor_names_what_is_wrong(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stream(broker, fresh)
    spec = str(write_spec(tmp_path, SPEC.replace("NAME", fresh)))
    done = cli("pipeline", "doctor", spec, "-j", "-s", broker.url)
    found = {check["name"]: check["state"] for check in done.json}
    assert done.code == 0, done.out
    names = ("pyspark", "java", "checkpoint", "sink", "server", "jetstream", "source", "rights")
    assert {found[name] for name in names} == {"ok"}

    done = cli(
        "pipeline", "doctor", "-j", "-s", "nats://127.0.0.1:1", "--master", "spark://127.0.0.1:1"
    )
    wrong = {check["name"] for check in done.json if check["state"] == "fail"}
    assert (done.code, wrong) == (1, {"server", "master"})

    monkeypatch.setenv("JSCTL_JAVA_HOME", str(tmp_path))
    done = cli("pipeline", "doctor", spec.replace("pipeline.yaml", "none.yaml"))
    assert (done.code, "no such file" in done.err) == (1, True)
    done = cli("pipeline", "doctor", "-j", "-s", broker.url)
    java = next(check for check in done.json if check["name"] == "java")
    assert (done.code, java["state"]) == (1, "fail")
    assert "jsctl[spark]" in java["remedy"]


@pytest.mark.usefixtures("spark")
def test_the_doctor_reads_through_a_worker(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 3))
    spec = str(write_spec(tmp_path, SPEC.replace("NAME", fresh)))
    done = cli("pipeline", "doctor", spec, "--deep", "-j", "-s", broker.url)
    assert done.code == 0, done.out
    found = {check["name"]: check["found"] for check in done.json}
    assert found["worker"].startswith("Python 3.")
    assert found["reading"] == f"1 message of {fresh} through a worker"


def test_a_pipeline_does_not_run_over_connect(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    spec = str(write_spec(tmp_path, SPEC.replace("NAME", fresh)))
    done = cli("pipeline", "run", spec, "--master", "sc://localhost", "-s", broker.url)
    assert (done.code, "over Spark Connect" in done.err) == (1, True)


@pytest.mark.timeout(240)
def test_status_and_stop_of_a_running_pipeline(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 20))
    spec = str(write_spec(tmp_path, SPEC.replace("NAME", fresh)))
    status = ("pipeline", "status", spec, "-j")
    assert cli(*status).json[0]["state"]["state"] == "never run"
    done = cli("pipeline", "stop", spec)
    assert (done.code, "does not run" in done.err) == (1, True)
    words = ["pipeline", "run", spec, "--server", broker.url, "--master", "local[2]"]
    run = subprocess.Popen(
        [sys.executable, "-m", "jsctl", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=quick_java(),
    )
    try:

        def reached() -> int:
            found: int = cli(*status).json[0]["position"].get(fresh, 0)
            return found

        wait_for(lambda: reached() == 20 or run.poll() is not None, "a batch", START_S)
        publish(broker, orders(fresh, 5))
        wait_for(lambda: reached() == 25 or run.poll() is not None, "another batch", START_S)
        done = cli("pipeline", "run", spec, "-s", broker.url)
        assert (done.code, "is run already by process" in done.err) == (1, True)
        done = cli("pipeline", "compact", spec)
        assert (done.code, "is being written by process" in done.err) == (1, True)
        done = cli("pipeline", "stop", spec)
        assert (done.code, "stopped after batch 1" in done.out) == (0, True), done.err
        _, err = run.communicate(timeout=START_S)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 0, err
    assert "25 rows in 2 batches; stopped on request" in err
    assert cli(*status).json[0]["state"]["state"] == "stopped"
