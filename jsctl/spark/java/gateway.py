"""Starts the Java side of Spark without spark-submit: no shell, no second runtime, any runtime.

spark-submit adds a Java module that small runtimes do not have, and refuses to boot on them. The
process ends when the pipe to its standard input closes, so it never outlives this one.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jsctl.errors import JsctlError
from jsctl.spark.java.find import Java

READY_S = 90.0
PAUSE_S = 0.02
LOG_TAIL_LINES = 3

_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""Packages that Spark reaches into by reflection."""
_UNSAFE_MEMORY_SINCE = 23
_NATIVE_ACCESS_SINCE = 17


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of Java. `memory` is the heap's size as Java writes it, for example 1g.

    `short` compiles only cheaply: quicker for jobs of seconds, slower for long ones. What is in
    `conf` can be seen by every user of the machine, so it must not hold secrets.
    """

    java: Java
    spark_home: Path
    log_file: Path
    master: str
    memory: str = "1g"
    short: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    jvm_flags: Sequence[str] = ()
    kept_open: Sequence[int] = ()
    """Files that Java holds open as long as it runs."""
    installed: bool = False
    """Workers import the PySpark that is installed, which is compiled; the zip beside the jars is
    compiled anew by each worker, which takes most of a second. For local masters alone."""


def command(launch: Launch) -> list[str]:
    """The whole command line."""
    java, home = launch.java, launch.spark_home
    words = [str(java.executable)]
    words += ["-cp", os.pathsep.join((str(home / "conf"), str(home / "jars" / "*")))]
    words += [f"-Xmx{launch.memory}", "-XX:+UseParallelGC", *launch.jvm_flags]
    if launch.short:
        words.append("-XX:TieredStopAtLevel=1")
    words += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    if java.version >= _UNSAFE_MEMORY_SINCE:
        words.append("--sun-misc-unsafe-memory-access=allow")
    if java.version >= _NATIVE_ACCESS_SINCE:
        words.append("--enable-native-access=ALL-UNNAMED")
    words += ["-Dio.netty.tryReflectionSetAccessible=true"]
    words += ["org.apache.spark.deploy.SparkSubmit", "--master", launch.master]
    for key, value in launch.conf.items():
        words += ["--conf", f"{key}={value}"]
    gateway = "org.apache.spark.api.python.PythonGatewayServer"
    return [*words, "--class", gateway, "pyspark-shell"]


@contextmanager
def gateway(launch: Launch) -> Iterator["subprocess.Popen[bytes]"]:
    """Within it, PySpark of this process finds the started Java. Raises JsctlError.

    The process goes on afterwards, until its standard input is closed.
    """
    with tempfile.TemporaryDirectory(prefix="jsctl-spark-") as directory:
        told = Path(directory) / "connection"
        process = _started(launch, told)
        try:
            port, secret = _connection(process, told, launch.log_file)
        except BaseException:
            process.kill()
            raise
    names = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield process
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _started(launch: Launch, told: Path) -> "subprocess.Popen[bytes]":
    environ = {**launch.environ, "SPARK_CONNECT_MODE": "0"}
    environ["SPARK_HOME"] = str(launch.spark_home)
    if launch.installed:  # Java puts the zip below it in front of the path of every worker
        del environ["SPARK_HOME"]
        environ.setdefault("SPARK_CONF_DIR", str(launch.spark_home / "conf"))
    environ["JAVA_HOME"] = str(launch.java.home)
    environ.setdefault("SPARK_SCALA_VERSION", scala_version(launch.spark_home))
    environ["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(told)
    launch.log_file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with launch.log_file.open("ab") as log:
            return subprocess.Popen(
                command(launch),
                pass_fds=launch.kept_open,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environ,
                start_new_session=True,  # an interrupt at the keyboard is ours, not Java's
            )
    except OSError as error:
        raise JsctlError(f"cannot start Java {launch.java.executable}: {error}") from error


def scala_version(spark_home: Path) -> str:
    """What Spark's jars are built for; launchers of executors ask the environment for it."""
    jar = next((spark_home / "jars").glob("spark-launcher_*.jar"), None)
    return jar.name.split("_")[1].split("-")[0] if jar is not None else ""


def _connection(process: "subprocess.Popen[bytes]", told: Path, log_file: Path) -> tuple[int, str]:
    """Port and secret, as Java writes them: a 4-byte number, a 4-byte length, the text."""
    end = time.monotonic() + READY_S
    while not told.exists():
        if process.poll() is not None:
            raise JsctlError(
                f"Java ended with status {process.returncode} while Spark started"
                f": {log_tail(log_file)}",
                hints=(f"the whole log is in {log_file}",),
            )
        if time.monotonic() > end:
            raise JsctlError(
                f"Spark did not start within {READY_S:g} s",
                hints=(f"the log is in {log_file}",),
            )
        time.sleep(PAUSE_S)
    data = told.read_bytes()
    size = int.from_bytes(data[4:8], "big")
    return int.from_bytes(data[:4], "big"), data[8 : 8 + size].decode()


def log_tail(log_file: Path) -> str:
    """The last lines of a log that are not a stack trace, in one line."""
    lines = log_file.read_text(errors="replace").splitlines() if log_file.exists() else []
    said = [line.strip() for line in lines if line.strip() and not line.startswith(("\t", "  "))]
    return " / ".join(said[-LOG_TAIL_LINES:]) or "nothing was logged"
