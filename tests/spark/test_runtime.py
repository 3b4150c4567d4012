"""How Java is started for a session, as far as that can be told without a start."""

import site
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from jsctl.errors import JsctlError
from jsctl.spark import runtime
from jsctl.spark.java.gateway import Launch


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """What would be started; nothing is."""
    from pyspark.sql import SparkSession

    seen: list[Launch] = []

    def gateway(launch: Launch) -> NoReturn:
        seen.append(launch)
        raise JsctlError("not here")

    monkeypatch.setattr(runtime, "gateway", gateway)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    return seen


@pytest.mark.processes
@pytest.mark.parametrize("linked", [False, True])
def test_pyspark_is_installed_behind_a_symbolic_link_too(
    linked: bool, launches: list[Launch], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark

    real = Path(pyspark.__file__).resolve().parent.parent
    link = tmp_path / "linked"
    link.symlink_to(real)
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(link if linked else real)])
    with pytest.raises(JsctlError, match="not here"):
        runtime.start_session(master="local[1]")
    assert launches[0].installed

    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    with pytest.raises(JsctlError, match="not here"):
        runtime.start_session(master="local[1]")
    assert not launches[1].installed
