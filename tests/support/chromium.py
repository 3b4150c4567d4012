"""A headless Chromium, driven over its debugging socket; no other library is needed."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.support.waiting import wait_for

NAMED = os.environ.get("JSCTL_CHROMIUM", "")
"""A program that is not on PATH; read before tests clear the environment."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
)
STEP_S = 0.1


def find_chromium() -> str:
    """The path of a Chromium; skips the running test if there is none."""
    found = NAMED or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(
            f"no Chromium: none of {', '.join(NAMES)} is on PATH and JSCTL_CHROMIUM is not set; "
            "`make browser` installs one"
        )
    return found


class Page:
    """One tab. `requests` are the addresses it asked for, `frames` what its sockets got."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.requests: list[str] = []
        self.frames = b""
        self._number = 0
        self._answers: dict[int, Any] = {}
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> Any:
        """A command of the DevTools protocol and its result."""
        self._number += 1
        number = self._number
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        end = time.monotonic() + 20
        while number not in self._answers:
            assert time.monotonic() < end, f"{method} was not answered"
            self._read(1.0)
        return self._answers.pop(number)

    def _read(self, seconds: float) -> None:
        try:
            message = json.loads(self.socket.recv(timeout=seconds))
        except TimeoutError:
            return
        if "id" in message:
            self._answers[message["id"]] = message.get("result", message.get("error"))
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        if message.get("method") == "Network.webSocketCreated":
            self.requests.append(params["url"])
        if message.get("method") == "Network.webSocketFrameReceived":
            frame = params["response"]
            data = frame["payloadData"]
            self.frames += base64.b64decode(data) if frame["opcode"] == 2 else data.encode()

    def until(self, fact: Callable[[], object], what: str, deadline_s: float = 60.0) -> None:
        """Reads events until a fact holds; AssertionError."""
        end = time.monotonic() + deadline_s
        while not fact():
            assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
            self._read(STEP_S)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.call("Runtime.evaluate", expression=expression)["result"].get("value")

    def press(self, key: str) -> None:
        """One key."""
        self.call("Input.dispatchKeyEvent", type="keyDown", text=key, key=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, x: int, y: int) -> None:
        """The left button."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        """What the page looks like, as PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def chromium(width: int = 1200, height: int = 800, *flags: str) -> Iterator[Page]:
    """A browser with one empty tab."""
    program = find_chromium()
    with tempfile.TemporaryDirectory(prefix="jsctl-", ignore_cleanup_errors=True) as directory:
        command = [program, *FLAGS, *flags, f"--user-data-dir={directory}"]
        command += [f"--window-size={width},{height}", "about:blank"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                with connect(_socket_of(Path(directory)), max_size=None) as socket:
                    yield Page(socket)
            finally:
                process.terminate()
                process.wait(10)


def _socket_of(directory: Path) -> str:
    import httpx

    ports = directory / "DevToolsActivePort"
    text = wait_for(lambda: ports.exists() and ports.read_text(), "Chromium listens", 30.0)
    port = str(text).split("\n")[0]

    def tab() -> str:
        with httpx.Client(trust_env=False) as web:
            for one in web.get(f"http://127.0.0.1:{port}/json/list").json():
                if one["type"] == "page":
                    return str(one["webSocketDebuggerUrl"])
        return ""

    return wait_for(tab, "a tab is there")
