"""What the suite of nats.java is given, without a JDK: libraries, a choice of tests, a launcher."""

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.conformance.java import artifacts, project_file, report_ports, selection
from tests.conformance.running import scratch_place

GRADLE = """
plugins {
    id("biz.aQute.bnd.builder") version "5.1.2"
}
dependencies {
    api 'org.example:ciphers:2.73.10'

    testImplementation 'io.nats:jnats-server-runner:4.0.1'
    testImplementation 'org.junit.platform:junit-platform-launcher:1.14.3'
}
"""
CIPHERS = ("org.example", "ciphers", "2.73.10")
RUNNER = ("io.nats", "jnats-server-runner", "4.0.1")
LAUNCHER = ("org.junit.platform", "junit-platform-launcher", "1.14.3")
CONSOLE = ("org.junit.platform", "junit-platform-console", "1.14.3")


def test_libraries_are_those_of_the_build_file_and_the_console_of_its_version() -> None:
    assert artifacts(GRADLE, own_runner=False) == [CIPHERS, RUNNER, LAUNCHER, CONSOLE]


def test_a_runner_that_is_built_here_is_not_fetched() -> None:
    assert artifacts(GRADLE, own_runner=True) == [CIPHERS, LAUNCHER, CONSOLE]


def test_a_build_file_without_junit_is_refused() -> None:
    with pytest.raises(SystemExit, match="junit-platform-launcher"):
        artifacts("dependencies {}", own_runner=False)


def test_a_project_has_each_library() -> None:
    root = ET.fromstring(project_file([CIPHERS, CONSOLE]))
    space = "{http://maven.apache.org/POM/4.0.0}"
    found = [tuple(part.text for part in each) for each in root.iter(f"{space}dependency")]
    assert found == [CIPHERS, CONSOLE]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ("", ["--scan-classpath=/built/suite"]),
        ("io.nats.client.EchoTests", ["--select-class=io.nats.client.EchoTests"]),
        ("a.EchoTests#testIt", ["--select-method=a.EchoTests#testIt"]),
    ],
    ids=["all", "class", "method"],
)
def test_a_choice_is_a_class_or_a_method(chosen: str, words: list[str]) -> None:
    assert selection(Path("/built/suite"), chosen) == words


def test_another_choice_is_refused() -> None:
    with pytest.raises(SystemExit, match="name a class"):
        selection(Path("/built/suite"), "--help")


@pytest.mark.processes
def test_a_server_is_told_to_say_where_it_listens() -> None:
    with scratch_place(["echo", "two words"]) as scratch:
        report_ports(scratch)
        launcher = scratch / "bin" / "nats-server"
        ran = subprocess.run([launcher, "--port", "1"], capture_output=True, text=True, check=True)
        assert ran.stdout == f"two words --port 1 --ports_file_dir {scratch}\n"
