"""The suite of nats.java, compiled with javac and run with JUnit's console.

Maven brings what the checkout's own list of dependencies names. The suite reads its files below
`src/test/resources` of the directory it runs in, so each run has a copy of these.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from tests.conformance.compare import Results
from tests.conformance.running import (
    TEST_TIMEOUT_S,
    Job,
    environment,
    read_report,
    run_words,
    scratch_place,
)

JAVA_SUITE = "nats.java"
RUNNER = "jnats-server-runner"
CONSOLE = ("org.junit.platform", "junit-platform-console")
LAUNCHER = "junit-platform-launcher"
"""The console is of the same version as this, which the checkout names."""
RESOURCES = Path("src", "test", "resources")
WAITING = Path(__file__).with_name("Patience.java")
WAITING_SERVICE = "org.junit.platform.launcher.LauncherSessionListener"
DEPENDENCY = re.compile(r"^\s*(?:api|\w*[iI]mplementation) '([\w.-]+):([\w.-]+):([\w.-]+)'", re.M)
SELECTED = re.compile(r"[\w.$]+(?:#\w+)?")

Artifact = tuple[str, str, str]
"""Group, name and version, as Maven knows a library."""


def java_jobs(checkout: Path, place: Path, runner: str) -> Iterator[Job]:
    """The suite of nats.java, compiled below `place`. `runner` is a checkout of what it starts
    servers with, for places without a release of that."""
    if not (checkout / "build.gradle").is_file():
        raise SystemExit(f"{checkout} is no checkout of {JAVA_SUITE}: no build.gradle")
    built = place / JAVA_SUITE
    if built.exists():
        shutil.rmtree(built)
    built.mkdir(parents=True)
    wanted = artifacts((checkout / "build.gradle").read_text(), own_runner=bool(runner))
    classes = compile_suite(checkout, built, wanted, runner)

    def run(command: Sequence[str], log: Path, chosen: str) -> Results:
        with scratch_place(command) as scratch:
            work = scratch / "work"
            shutil.copytree(checkout / RESOURCES, work / RESOURCES)
            report_ports(scratch)
            words = [
                *("java", f"-Djava.io.tmpdir={scratch / 'tmp'}", f"-Duser.home={scratch / 'home'}"),
                f"-Dports.directory={scratch}",
                f"-Djunit.jupiter.execution.timeout.default={TEST_TIMEOUT_S}s",
                *("-cp", os.pathsep.join([*classes, str(work / RESOURCES)])),
                *("org.junit.platform.console.ConsoleLauncher", "execute"),
                *selection(built / "suite", chosen),
                *("--details=verbose", "--disable-banner", "--disable-ansi-colors"),
                f"--reports-dir={scratch / 'reports'}",
            ]
            variables = environment(scratch) | {
                "nats_server_path": str(scratch / "bin" / "nats-server")
            }
            run_words(words, work, variables, log)
            return read_report(JAVA_SUITE, scratch / "reports" / "TEST-junit-jupiter.xml", log)

    yield Job(JAVA_SUITE, run)


def artifacts(gradle: str, own_runner: bool) -> list[Artifact]:
    """What a build file names, and JUnit's console; the suite's runner not if it is built here."""
    found = [
        (group, name, version)
        for group, name, version in DEPENDENCY.findall(gradle)
        if not (own_runner and name == RUNNER)
    ]
    versions = [version for _, name, version in found if name == LAUNCHER]
    if not versions:
        raise SystemExit(f"the build file of {JAVA_SUITE} names no {LAUNCHER}")
    return [*found, (*CONSOLE, versions[0])]


def selection(suite: Path, chosen: str) -> list[str]:
    """All tests, or those of `Class` or `Class#method`, the class with its package."""
    if not chosen:
        return [f"--scan-classpath={suite}"]
    if not SELECTED.fullmatch(chosen):
        raise SystemExit(f"{chosen}: name a class with its package, or class#method")
    return [f"--select-method={chosen}" if "#" in chosen else f"--select-class={chosen}"]


def compile_suite(
    checkout: Path, built: Path, wanted: Sequence[Artifact], runner: str
) -> list[str]:
    """Fetch the libraries, compile client, runner, suite and our part; the class path of all."""
    project = built / "pom.xml"
    project.write_text(project_file(wanted))
    libraries = built / "libraries"
    fetch = ["mvn", "--quiet", "--batch-mode", "--file", str(project)]
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
    subprocess.run([*fetch, *copy], check=True)
    known = [str(libraries / "*")]
    sources = {"client": checkout / "src/main/java", "suite": checkout / "src/test/java"}
    if runner:
        sources = {"runner": Path(runner).resolve() / "src/main/java"} | sources
    for name, source in sources.items():
        compile_files(sorted(source.rglob("*.java")), built / name, known)
        known.insert(0, str(built / name))
    compile_files([WAITING], built / "waiting", known)
    service = built / "waiting" / "META-INF" / "services" / WAITING_SERVICE
    service.parent.mkdir(parents=True)
    service.write_text(f"{WAITING.stem}\n")
    return [str(built / "waiting"), *known]


def compile_files(files: Sequence[Path], to: Path, known: Sequence[str]) -> None:
    """Compile into the directory `to`; the names of the files are too many for a command line."""
    names = to.with_suffix(".files")
    names.write_text("".join(f'"{file}"\n' for file in files))
    words = ["javac", "-nowarn", "-encoding", "UTF-8", "-d", str(to), "-cp", os.pathsep.join(known)]
    subprocess.run([*words, f"@{names}"], check=True)


def project_file(wanted: Sequence[Artifact]) -> str:
    """A project of Maven's which has nothing but dependencies."""
    lines = [
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>',
        "<groupId>suite</groupId><artifactId>suite</artifactId><version>1</version><dependencies>",
    ]
    for group, name, version in wanted:
        parts = {"groupId": group, "artifactId": name, "version": version}
        inner = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in parts.items())
        lines.append(f"<dependency>{inner}</dependency>")
    return "\n".join([*lines, "</dependencies></project>", ""])


def report_ports(scratch: Path) -> None:
    """Have each server say when it listens, by a file in `scratch`: what our part waits for."""
    launcher = scratch / "bin" / "nats-server"
    launcher.write_text(f"{launcher.read_text().rstrip()} --ports_file_dir {scratch}\n")
