"""Answers on the monitoring port."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from html import escape
from urllib.parse import quote

from jsctl.api.codec import dumps, encode
from jsctl.api.monitoring.health import Healthz
from jsctl.broker.system.monitoring.endpoints import SYS_ROUTES, Endpoint
from jsctl.broker.system.monitoring.params import decode
from jsctl.broker.system.monitoring.view import ServerView
from jsctl.broker.system.monitoring.words import NotMine, Refused
from jsctl.dataclass import dataclass, replace

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"

_BY_PATH = {path: name for name, endpoint in SYS_ROUTES.items() for path in endpoint.paths}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, type and body of an answer."""

    status: int
    content_type: str
    body: bytes


def answer_http(view: ServerView, path: str, params: Mapping[str, str]) -> HttpAnswer:
    """Answer a GET. The caller has counted the request in the view's `http_requests`."""
    page = page_of(view.settings.http_base_path, path)
    if page == "/":
        return HttpAnswer(200, HTML, _index(view, path))
    name = _BY_PATH.get(page)
    if name is None:
        return HttpAnswer(404, TEXT, b"404 page not found\n")
    return _endpoint(view, SYS_ROUTES[name], params)


def page_of(base: str, path: str) -> str:
    """The page that a path names below the base path; empty if it is not below it."""
    below = path.removeprefix(base) or "/"
    return below if path.startswith(base) and below.startswith("/") else ""


def known_page(page: str) -> bool:
    """Whether a page is counted in `http_req_stats`."""
    return page == "/" or page in _BY_PATH


def plain(value: object) -> object:
    """API objects anywhere in dicts as documents."""
    if is_dataclass(value) and not isinstance(value, type):
        return encode(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def _endpoint(view: ServerView, endpoint: Endpoint, params: Mapping[str, str]) -> HttpAnswer:
    try:
        options = endpoint.options(**decode(endpoint.params, params))
    except Refused as error:
        return HttpAnswer(400, TEXT, str(error).encode())
    try:
        found = endpoint.answer(view, options)
    except Refused as error:
        return HttpAnswer(endpoint.refused_status, TEXT, str(error).encode())
    except NotMine as error:
        return HttpAnswer(400, TEXT, f"filtered response: {error}".encode())
    if isinstance(found, Healthz):
        return HttpAnswer(found.status_code, JSON, dumps(replace(found, status_code=0)))
    return HttpAnswer(200, JSON, dumps(plain(found), indent=endpoint.indent))


_PAGE = """<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>{name}</title>
    <style>
      body {{ font-family: ui-sans-serif, system-ui, sans-serif; margin: 2rem }}
      a {{ display: block; padding: 0.2rem 0; color: #48485c; text-decoration: none }}
      a:hover {{ color: #3b32ca }}
      code {{ color: #999; font-size: 0.8rem }}
    </style>
  </head>
  <body>
    <h1>{name}</h1>
    <p>jsctl {product}, speaks NATS {version}</p>
{links}
  </body>
</html>
"""


def _index(view: ServerView, path: str) -> bytes:
    """Links are relative, for whoever reads them through a proxy that has a path of its own.

    What they are relative to ends at the last slash of the path that was asked for.
    """
    settings = view.settings
    here = quote(path.rpartition("/")[2])
    start = f"./{here}" if here else "."
    links = [
        f'    <a href="{start}{endpoint.paths[0]}">{endpoint.title} '
        f"<code>{endpoint.paths[0]}</code></a>"
        for endpoint in SYS_ROUTES.values()
        if endpoint.title
    ]
    page = _PAGE.format(
        name=escape(settings.server_name),
        product=escape(settings.product_version),
        version=escape(settings.version),
        links="\n".join(links),
    )
    return page.encode()
