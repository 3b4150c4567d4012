"""The dashboard in a browser: who is let in, what is asked for, and that keys arrive."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from aiohttp.test_utils import make_mocked_request

from jsctl.dashboard.web import Guard, public_origin
from jsctl.errors import UsageError
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER, Broker
from tests.support.chromium import chromium
from tests.support.tls_proxy import tls_proxy
from tests.support.waiting import wait_for

SYSTEM = "accounts { $SYS { users: [ { user: sys, password: sys } ] } }\n"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@dataclass(frozen=True, slots=True)
class Served:
    """A running server of pages, and the address it printed."""

    address: str
    process: subprocess.Popen[bytes]

    @property
    def root(self) -> str:
        """Scheme, host and port."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.address).port or 0

    def get(
        self, path: str, cookies: dict[str, str] | None = None, **headers: str
    ) -> httpx.Response:
        """One request, redirects not followed."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        with httpx.Client(trust_env=False, cookies=cookies) as web:
            return web.get(self.root + path, headers=sent)

    def cookies(self) -> dict[str, str]:
        """What the token is swapped for."""
        with httpx.Client(trust_env=False) as web:
            answer = web.get(self.address)
        assert answer.status_code == 303
        return dict(answer.cookies)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker("-js", name="one", config=SYSTEM) as running:
        yield running


@contextmanager
def serving(broker: Broker, home: Path, *words: str) -> Iterator[Served]:
    """The command, until the block ends."""
    log = home / "log"
    command = [sys.executable, "-m", "jsctl", "--server", broker.url, "dashboard", "--web", *words]
    command += ["--system-user", SYSTEM_USER, "--system-password", SYSTEM_PASSWORD]
    environment = {key: value for key, value in os.environ.items() if key[:5] != "NATS_"}
    environment |= {"XDG_CONFIG_HOME": str(home), "TZ": "UTC", "PYTHONUNBUFFERED": "1"}
    with (
        log.open("wb") as out,
        subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        try:

            def address() -> str:
                assert process.poll() is None, log.read_text()
                found = re.search(r"http://\S+", log.read_text())
                return found[0] if found else ""

            yield Served(wait_for(address, "the address is printed"), process)
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture(scope="module")
def served(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(broker, tmp_path_factory.mktemp("web")) as running:
        yield running


def test_the_token_is_swapped_for_a_cookie(served: Served) -> None:
    answer = served.get(served.address.removeprefix(served.root))
    assert answer.status_code == 303
    assert "token" not in answer.headers["Location"]
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    page = served.get("/?fontsize=12", cookies=served.cookies())
    assert page.status_code == 200
    assert 'data-font-size="12"' in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    others = re.findall(r"https?://[^\"' ]+", page.text)
    assert all(other.startswith(served.root) for other in others)


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js", "/page/page.css"])
def test_without_the_token_nobody_comes_in(served: Served, path: str) -> None:
    assert served.get(path, Origin=served.root).status_code == 403
    assert served.get(f"{path}?token=wrong", Origin=served.root).status_code == 403
    wrong = {name: "wrong" for name in served.cookies()}
    assert served.get(path, cookies=wrong, Origin=served.root).status_code == 403


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js"])
def test_other_names_of_this_host_are_refused(served: Served, path: str) -> None:
    for host in ("evil.example", f"evil.example:{served.port}", f"127.0.0.1.nip.io:{served.port}"):
        answer = served.get(path, cookies=served.cookies(), Host=host, Origin=served.root)
        assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js"])
def test_other_pages_are_refused(served: Served, path: str) -> None:
    headers = UPGRADE if path == "/ws" else {}
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{served.port}"):
        answer = served.get(path, cookies=served.cookies(), Origin=origin, **headers)
        assert answer.status_code == 403


def test_a_socket_without_an_origin_is_refused(served: Served) -> None:
    assert served.get("/ws", cookies=served.cookies(), **UPGRADE).status_code == 403


def refusal(guard: Guard, host: str, path: str = "/static/x", origin: str = "") -> str:
    """What a guard says to a request that knows the token."""
    headers = {"Host": host, "Cookie": f"{guard.cookie}={guard.token}"}
    request = make_mocked_request("GET", path, headers | ({"Origin": origin} if origin else {}))
    return guard.refusal(request)


def test_browsers_leave_out_port_80() -> None:
    guard = Guard("127.0.0.1", ip_address("127.0.0.1"), 80, "token")
    for host in ("127.0.0.1", "127.0.0.1:80", "localhost"):
        name = host.removesuffix(":80")
        assert not refusal(guard, host, "/ws", f"http://{name}")
        for stranger in ("http://evil.example", f"http://{name}:8080", f"https://{name}", "null"):
            assert refusal(guard, host, "/ws", stranger)
    for host in ("evil.example", "127.0.0.1:8080", "127.0.0.2", "", "a@127.0.0.1", "127.0.0.1:x"):
        assert refusal(guard, host)
    assert refusal(Guard("127.0.0.1", ip_address("127.0.0.1"), 8080, "token"), "127.0.0.1")


def test_who_listens_everywhere_is_found_at_every_address() -> None:
    guard = Guard("0.0.0.0", ip_address("0.0.0.0"), 8080, "token")
    for name in ("10.1.2.3", "[2001:db8::1]", "localhost", socket.gethostname()):
        assert not refusal(guard, f"{name}:8080", "/ws", f"http://{name.lower()}:8080")
        assert refusal(guard, f"{name}:8080", "/ws", "http://10.9.9.9:8080")
    for name in ("evil.example", "10.1.2.3.nip.io", "[::1%;x]", "[10.1.2.3", "10.1.2"):
        assert refusal(guard, f"{name}:8080")
    narrow = Guard("10.1.2.3", ip_address("10.1.2.3"), 8080, "token")
    assert refusal(narrow, "10.1.2.4:8080") and refusal(narrow, "localhost:8080")


def test_names_are_compared_as_browsers_write_them() -> None:
    guard = Guard("Some-Host", ip_address("10.1.2.3"), 8080, "token")
    assert not refusal(guard, "some-host:8080", "/ws", "http://some-host:8080")
    assert not refusal(guard, "10.1.2.3:8080", "/ws", "http://10.1.2.3:8080")
    long = Guard("0:0:0:0:0:0:0:1", ip_address("::1"), 8080, "token")
    assert not refusal(long, "[::1]:8080", "/ws", "http://[::1]:8080")


@pytest.mark.processes
def test_a_page_goes_on_where_it_was_opened(broker: Broker, tmp_path: Path) -> None:
    """Its cookie is for that name alone."""
    with serving(broker, tmp_path, "--web-host", "0.0.0.0", "--insecure") as everywhere:
        assert urlsplit(everywhere.address).hostname != "0.0.0.0"
        query = everywhere.address.removeprefix(everywhere.root)
        for name in ("127.0.0.1", "localhost"):
            here = Served(f"http://{name}:{everywhere.port}{query}", everywhere.process)
            page = here.get("/", cookies=here.cookies())
            assert page.status_code == 200
            socket_url = f"ws://{name}:{everywhere.port}"
            assert f'"{socket_url}/ws"' in page.text
            assert f" {socket_url};" in page.headers["Content-Security-Policy"]
            assert here.get("/", cookies=here.cookies(), Host="evil.example").status_code == 403
            evil = "http://evil.example"
            headers = {**UPGRADE, "Origin": evil}
            assert here.get("/ws", cookies=here.cookies(), **headers).status_code == 403


def test_behind_a_proxy_pages_are_those_of_its_address() -> None:
    """It may pass on the `Host` that browsers gave, or say its own."""
    public = "https://dash.example"
    guard = Guard("127.0.0.1", ip_address("127.0.0.1"), 8080, "token", public)
    for host in ("dash.example", "Dash.Example:443", "127.0.0.1:8080", "localhost:8080"):
        assert not refusal(guard, host, "/ws", public)
        own = ("http://dash.example", "https://dash.example:8443", "http://127.0.0.1:8080")
        for stranger in (*own, "https://evil.example", "null", ""):
            assert refusal(guard, host, "/ws", stranger)
    for host in ("dash.example:80", "dash.example:8080", "evil.example", "dash.example.evil:443"):
        assert refusal(guard, host)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Dash.Example/", "https://dash.example"),
        ("https://dash.example:443", "https://dash.example"),
        ("http://dash.example:8443", "http://dash.example:8443"),
        ("https://[0:0::1]:9", "https://[::1]:9"),
        ("https://b\xfccher.example", "https://xn--bcher-kva.example"),
    ],
)
def test_a_public_address_is_written_as_browsers_write_it(url: str, origin: str) -> None:
    assert public_origin(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        *("dash.example", "ftp://dash.example", "https://", "https://a:x", "https://a b", "//a"),
        *("https://a/path", "https://a?q", "https://a#f", "https://u:secret@a", "https://a:99999"),
        *("https://[::1", "https://" + "x" * 70, "https://a;script-src *"),
    ],
)
def test_what_is_no_public_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--web-url"):
        public_origin(url)


def test_the_page_works_behind_a_proxy_with_tls(broker: Broker, tmp_path: Path) -> None:
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    with tls_proxy(certificates) as proxy:
        public = f"https://localhost:{proxy.port}"
        with (
            serving(broker, tmp_path, "--web-url", public) as behind,
            chromium(1200, 800, "--ignore-certificate-errors") as page,
        ):
            proxy.behind = behind.port
            log = tmp_path / "log"
            address = re.compile(rf"{public}/\?token=\S+")
            wait_for(lambda: address.search(log.read_text()), "the public address is printed")
            found = address.search(log.read_text())
            assert found is not None
            page.call("Page.navigate", url=found[0])
            page.until(lambda: b"HEALTHY" in page.frames, "the badge is drawn")
            query = found[0].removeprefix(public)
            assert "Secure" in behind.get(query).headers["Set-Cookie"]


def served_files() -> list[str]:
    """The path of every file that a page can ask for."""
    page = files("jsctl.dashboard").joinpath("page")
    found = []
    for root, prefix in ((files("textual_serve").joinpath("static"), "/static"), (page, "/page")):
        base = Path(str(root))
        found += [f"{prefix}/{one.relative_to(base)}" for one in base.rglob("*") if one.is_file()]
    return sorted(found)


def test_no_file_of_the_page_names_another_host(served: Served) -> None:
    """Needs no browser; comments may name hosts, and are taken out."""
    cookies = served.cookies()
    read = 0
    for path in ["/", *served_files()]:
        answer = served.get(path, cookies=cookies)
        assert answer.status_code == 200, path
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"], path
        if path != "/" and not path.endswith((".css", ".js", ".html")):
            continue
        text = re.sub(r"/\*.*?\*/", "", answer.text, flags=re.DOTALL)
        named = re.findall(r"""(?:https?:|wss?:)?//[\w.-]+\.\w+[^\s"'`)]*""", text)
        named += re.findall(r"(?:https?|wss?)://[^\s\"'`)]+", text)
        strangers = [one for one in named if urlsplit(one).netloc != urlsplit(served.root).netloc]
        assert not strangers, path
        read += 1
    assert read >= 5


def children(served: Served) -> list[str]:
    """The processes behind the pages."""
    pid = served.process.pid
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_dashboards_end_with_the_server_of_their_pages(
    broker: Broker, tmp_path: Path, how: signal.Signals
) -> None:
    with serving(broker, tmp_path) as served, chromium() as page:
        page.call("Page.navigate", url=served.address)
        page.until(lambda: b"HEALTHY" in page.frames, "the badge is drawn")
        (child,) = children(served)
        served.process.send_signal(how)
        served.process.wait(10)
        wait_for(lambda: not Path(f"/proc/{child}/exe").exists(), "the dashboard ended", 15.0)


def test_credentials_are_in_no_command_line(served: Served, broker: Broker) -> None:
    with chromium() as page:
        page.call("Page.navigate", url=served.address)
        page.until(lambda: b"\x1b" in page.frames, "something is drawn")
        lines = [
            Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ")
            for child in children(served)
        ]
        assert lines
        assert not [line for line in lines if b"password" in line]
        assert all(b"--read-only" in line for line in lines)


def test_the_page_works_in_a_browser(served: Served) -> None:
    with chromium() as page:
        page.call("Page.navigate", url=served.address)
        page.until(lambda: b"HEALTHY" in page.frames, "the badge is drawn")
        assert page.evaluate("document.body.classList.contains('-first-byte')")
        page.click(300, 300)
        page.frames = b""
        page.press("3")
        page.until(lambda: b"Delivered/s" in page.frames, "the third tab is drawn")
        strangers = [
            url
            for url in page.requests
            if not url.startswith(("data:", served.root, served.root.replace("http", "ws")))
        ]
        assert not strangers
        assert len(page.requests) > 3
        page.press("q")
        page.until(
            lambda: page.evaluate("document.body.classList.contains('-closed')"),
            "the dashboard ended",
        )


def refused(*words: str) -> str:
    """What the command says when it does not start to serve."""
    command = [sys.executable, "-m", "jsctl", "dashboard", "--web", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.processes
def test_other_machines_are_not_served_by_accident(host: str) -> None:
    assert f"--web-host {host}" in refused("--web-host", host)


@pytest.mark.processes
def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot serve on 127.0.0.1:{port}" in refused("--web-port", str(port))


@pytest.mark.parametrize(
    ("word", "value"), [("--web-port", "65536"), ("--web-port", "-1"), ("--web-host", "ä" * 70)]
)
@pytest.mark.processes
def test_what_nobody_can_listen_on_is_told(word: str, value: str) -> None:
    said = refused(word, value, "--insecure")
    assert value in said and "Traceback" not in said
