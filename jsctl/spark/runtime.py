"""A Spark session that works as it is: Java found, workers with the same Python, format known.

`start_session` is for commands and tests of jsctl; whoever has a session of their own needs
nothing of it, `spark.read.format("jetstream")` works wherever the package is installed.
"""

import atexit
import logging
import os
import shutil
import site
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from jsctl.errors import JsctlError, UsageError
from jsctl.spark.failures import explain_failure
from jsctl.spark.java.class_archive import class_archive
from jsctl.spark.java.find import find_java
from jsctl.spark.java.gateway import Launch, gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["explain_failure", "package_zip", "start_session", "stop_session"]

LOCAL_MASTER = "local[*]"
SPARK_VERSION_MIN = (4, 2)
INSTALL_HINT = "pip install 'jsctl[spark]'"
SHIPPED = ("jsctl", "pyspark_jetstream")
NOT_SHIPPED = ("broker", "dashboard", "commands", "__pycache__")

NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They print every failed query as a page of JSON; failures are explained by their callers."""

CONF: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.log.level": "WARN",
}
"""What is set unless the caller says otherwise."""


def start_session(
    app: str = "jsctl",
    *,
    master: str = LOCAL_MASTER,
    memory: str = "1g",
    log_file: Path | None = None,
    conf: Mapping[str, str] | None = None,
    short: bool = False,
) -> "SparkSession":
    """A new session, or the one this process has already.

    `master` is local[*], local[2], spark://, k8s://, yarn, or sc://host:port for Spark Connect;
    for all but local ones the package itself is shipped along. `memory` is the heap of the
    driver's Java. Everything that Java and the Python workers print goes to `log_file`, a
    temporary file by default. `conf` are Spark's own settings: no secrets, others can see them.
    `short` is for jobs of seconds: it starts quicker and runs slower.

    Raises JsctlError: PySpark or Java is missing or too old, or Spark does not start.
    """
    _check_pyspark()
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    log = log_file or Path(tempfile.mkstemp(prefix="jsctl-spark-", suffix=".log")[1])
    try:
        if master.startswith("sc://"):
            return _connect_session(app, master, conf or {})
        return _classic_session(app, master, memory, log, {**CONF, **(conf or {})}, short)
    except JsctlError:
        raise
    except Exception as error:
        raise explain_failure(error, log_file=log) from error


def stop_session(spark: "SparkSession") -> None:
    """Ends a session and its Java."""
    from pyspark import SparkContext

    running = getattr(SparkContext, "_gateway", None)
    process = getattr(running, "jsctl_process", None)
    spark.stop()
    if process is None or running is None:
        return
    running.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    if process.stdin is not None:
        process.stdin.close()
    if running.jsctl_lingers:
        # Java is about to write its archive of classes, which nobody has to wait for.
        Thread(target=process.wait, daemon=True).start()
    else:
        process.wait()


def package_zip(directory: Path) -> Path:
    """The package as a zip that Spark can send to workers: what readers and writers need."""
    root = Path(__file__).resolve().parent.parent.parent
    if root.is_file():  # it runs out of a zip already
        return root
    target = directory / "jsctl-spark.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in SHIPPED:
            for path in sorted((root / name).rglob("*.py")):
                within = path.relative_to(root)
                if len(within.parts) < 2 or within.parts[1] not in NOT_SHIPPED:
                    archive.write(path, str(within))
    return target


def _check_pyspark() -> None:
    try:
        import pyarrow  # noqa: F401 - only whether it is there
        from pyspark import __version__ as version
    except ImportError as error:
        raise JsctlError(f"Spark is not installed: {error}", hints=(INSTALL_HINT,)) from None
    if tuple(int(part) for part in version.split(".")[:2]) < SPARK_VERSION_MIN:
        wanted = ".".join(map(str, SPARK_VERSION_MIN))
        raise JsctlError(f"PySpark {version} is too old, {wanted} is needed", hints=(INSTALL_HINT,))


def _classic_session(
    app: str, master: str, memory: str, log: Path, conf: dict[str, str], short: bool
) -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    java, home = find_java(os.environ), Path(_find_spark_home())
    archive = class_archive(java, home, os.environ)
    launch = Launch(
        java,
        home,
        log,
        master,
        memory,
        short,
        conf,
        _environ(),
        jvm_flags=archive.flags,
        kept_open=() if archive.lock is None else (archive.lock,),
        installed=is_local(master) and _is_installed(home),
    )
    with closing(archive), gateway(launch) as process:
        builder = SparkSession.builder.appName(app).master(master)
        for key, value in conf.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    running = SparkContext._gateway
    assert running is not None
    running.jsctl_process = process  # kept open: Java ends when its input closes
    running.jsctl_lingers = archive.making
    if not is_local(master):
        _ship(spark)
    return spark


def is_local(master: str) -> bool:
    """Whether tasks run in this machine's driver, where the package is importable."""
    return master == "local" or master.startswith("local[")


def _is_installed(home: Path) -> bool:
    """Whether this Python, started by Java, finds the PySpark that the jars in `home` belong to."""
    if Path(os.environ["PYSPARK_PYTHON"]) != Path(sys.executable):
        return False
    places = [
        *site.getsitepackages(),
        *([site.getusersitepackages()] if site.ENABLE_USER_SITE else []),
    ]
    # PySpark names its own place without symbolic links; a virtual environment may be behind one.
    real = os.path.realpath(home.parent)
    return home.name == "pyspark" and real in map(os.path.realpath, places)


def _environ() -> dict[str, str]:
    """The environment of Java and its Python workers, which must find this package."""
    root = str(Path(__file__).resolve().parent.parent.parent)
    given = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{given}" if given else root}


def _ship(spark: "SparkSession") -> None:
    from jsctl.spark.source import JetStreamDataSource

    directory = Path(tempfile.mkdtemp(prefix="jsctl-ship-"))
    atexit.register(
        shutil.rmtree, directory, ignore_errors=True
    )  # workers fetch it when they start
    spark.sparkContext.addPyFile(str(package_zip(directory)))
    spark.dataSource.register(JetStreamDataSource)


def _connect_session(app: str, master: str, conf: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    from jsctl.spark.source import JetStreamDataSource

    try:
        import grpc  # noqa: F401 - only whether it is there
    except ImportError:
        raise UsageError(
            f"{master}: Spark Connect needs more packages",
            hints=("pip install 'pyspark[connect]'",),
        ) from None
    builder = SparkSession.builder.appName(app).remote(master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory(prefix="jsctl-ship-") as directory:
        spark.addArtifacts(str(package_zip(Path(directory))), pyfile=True)
        spark.dataSource.register(JetStreamDataSource)
    return spark
