"""What commands say of runs, by the files that a run leaves."""

import threading
from pathlib import Path

import pytest

from jsctl.errors import JsctlError
from jsctl.spark.pipeline.layout import write_json
from jsctl.spark.pipeline.state import Checkpoint, Registry, RunState
from tests.spark.pipeline.conftest import Run, write_spec
from tests.support.waiting import wait_for

SPEC = """\
name: p
source: {stream: S}
transform: SELECT * FROM input
sink: {type: console}
checkpoint: CHECKPOINT
trigger: {every: 1s}
"""


def test_a_run_that_fails_when_it_is_to_end_was_not_stopped(cli: Run, tmp_path: Path) -> None:
    """As where its last batch finds no room."""
    spec = write_spec(tmp_path, SPEC)
    checkpoint = Checkpoint(str(tmp_path / "CHECKPOINT"))
    checkpoint.prepare()
    runs = threading.Event()

    def run() -> None:
        with checkpoint.running():
            checkpoint.save(RunState("running", "host", 1, 1, 1, batch=3))
            runs.set()
            wait_for(checkpoint.asked_to_stop, "somebody asks for an end")
            checkpoint.save(RunState("failed", "host", 1, 1, 2, batch=3, error="no room"))

    runner = threading.Thread(target=run)
    runner.start()
    runs.wait()
    done = cli("pipeline", "stop", str(spec))
    runner.join()
    assert (done.code, done.out) == (1, "")
    assert "pipeline p failed when it was to end: no room" in done.err


def test_a_run_that_ends_while_somebody_looks_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.prepare()
    checkpoint.save(RunState("running"))

    def ends(self: Checkpoint) -> bool:
        self.save(RunState("finished", rows=7))
        return False

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "is_running", ends)
        found = checkpoint.state()
    assert (found.state, found.rows) == ("finished", 7)
    checkpoint.save(RunState("running"))
    assert checkpoint.state().error == "the process is gone"


@pytest.mark.parametrize(
    ("document", "want"),
    [
        ({"state": "finished", "rows": 7, "epoch": 3}, RunState("finished", rows=7)),
        ({"rows": 7, "host": None}, RunState("unknown", rows=7)),
        ({"state": "finished", "updated": "now", "lag": True}, RunState("finished")),
        ({"state": "x", "position": {"S": 5, "T": {}}}, RunState("x", position={"S": 5})),
    ],
)
def test_another_version_says_more_or_less(
    tmp_path: Path, document: dict[str, object], want: RunState
) -> None:
    write_json(tmp_path / "state.json", document)
    assert Checkpoint(str(tmp_path)).state() == want


def test_what_names_no_pipeline_is_told(tmp_path: Path) -> None:
    write_json(tmp_path / "p.json", {"path": "p.yaml", "checkpoints": ["a"]})
    with pytest.raises(JsctlError, match="names no pipeline"):
        Registry(tmp_path).known()
