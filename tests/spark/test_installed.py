"""Spark finds the format however the package was installed, from any directory."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from jsctl.testing import BrokerFactory
from tests.spark.conftest import KINDS
from tests.support.filling import Filler, plain

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "jsctl", "pyspark_jetstream")
COMPILED = ("strict", "wheel")
"""A strict installation fails without what it would link to."""
BUILD_S = 120

BUILD = """
import sys
from setuptools import build_meta
mode, target = sys.argv[1:]
if mode == "wheel":
    build_meta.build_wheel(target)
else:
    build_meta.build_editable(target, {"editable_mode": mode} if mode != "default" else None)
"""
LOOK_UP = """
import io
from pyspark.sql.worker.lookup_data_sources import _main
found = io.BytesIO()
_main(io.BytesIO(), found)
import jsctl
print(b"\\x00\\x09jetstream" in found.getvalue(), jsctl.__file__)
"""
"""What a worker of Spark runs to learn the formats that there are."""
READ = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
options = {"servers": sys.argv[1], "stream": "SRC"}
print("read", spark.read.format("jetstream").options(**options).load().count())
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in another place."""
    target = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target / name)
    return target


def environment(directory: Path) -> Path:
    """A Python of its own: the libraries of this one, without what is editable in it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    python = directory / "bin" / "python"
    site = site_of(directory)
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def site_of(directory: Path) -> Path:
    """Where packages of an environment are."""
    return next((directory / "lib").glob("python3*")) / "site-packages"


def zipped(sources: Path, directory: Path) -> None:
    """A zip on the path."""
    archive = shutil.make_archive(str(directory / "package"), "zip", sources)
    (site_of(directory) / "zip.pth").write_text(archive + "\n")


def built(mode: str, sources: Path, directory: Path) -> None:
    """What an installer does with a wheel: unpack it."""
    wheels = directory / "wheels"
    wheels.mkdir()
    words = [sys.executable, "-c", BUILD, mode, str(wheels)]
    # Where the format is found has nothing to do with a compiler, which takes most of the time.
    variables = os.environ if mode in COMPILED else {**os.environ, "CC": "false"}
    done = subprocess.run(
        words,
        cwd=sources,
        env=variables,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site_of(directory))


@pytest.mark.processes
@pytest.mark.parametrize("mode", ["default", "compat", "strict", "wheel", "zip"])
def test_a_worker_finds_the_format(mode: str, sources: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    if mode == "zip":
        zipped(sources, tmp_path / "env")
    else:
        built(mode, sources, tmp_path / "env")
    done = subprocess.run(
        [python, "-c", LOOK_UP], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found, where = done.stdout.split()
    assert found == "True"
    assert not Path(where).is_relative_to(ROOT)


@pytest.mark.spark_long
@pytest.mark.timeout(300)
def test_a_session_of_ones_own_reads(
    sources: Path, tmp_path: Path, jsctl_broker: BrokerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = environment(tmp_path / "env")
    built("default", sources, tmp_path / "env")
    broker = jsctl_broker("-js", server=KINDS["nats-server"])
    with Filler(broker) as filler:
        filler.stream("SRC")
        filler.publish(plain(100, "src"))
        monkeypatch.setenv("PYSPARK_PYTHON", str(python))
        done = subprocess.run(
            [python, "-c", READ, broker.url],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert "read 100" in done.stdout, done.stderr[-3000:]
