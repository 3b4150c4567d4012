"""One look, printed: as a JSON document, as text, or as an SVG picture."""

import json
from dataclasses import fields, is_dataclass
from enum import Enum

from rich.segment import Segment

from jsctl.api.times import format_time
from jsctl.dashboard.model.snapshot import Level, Snapshot
from jsctl.dashboard.options import DashboardOptions

_TIMES = ("taken_ns", "last_ns", "time_ns", "leader_since_ns")


def document_of(snapshot: Snapshot) -> str:
    """The snapshot as JSON: times as RFC 3339, severities and states as words."""
    return json.dumps(_plain(snapshot), indent=2, ensure_ascii=False) + "\n"


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        found: dict[str, object] = {}
        for one in fields(value):
            inner = getattr(value, one.name)
            if one.name in _TIMES:
                found[one.name.removesuffix("_ns")] = format_time(inner)
            else:
                found[one.name] = _plain(inner)
        return found
    if isinstance(value, Level):
        return value.name.lower()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value


async def picture_of(
    snapshot: Snapshot, options: DashboardOptions, form: str, width: int, height: int
) -> str:
    """The overview as it looks on a terminal of that size; `form` is text or svg."""
    from jsctl.dashboard.app import Dashboard

    app = Dashboard(options)
    app.snapshot = snapshot
    async with app.run_test(size=(width, height)) as pilot:
        app.show(snapshot)
        await pilot.pause()
        await pilot.pause()
        return svg_of(app) if form == "svg" else text_of(app)


def svg_of(app: object) -> str:
    """The screen as SVG that names no font of another host."""
    from jsctl.dashboard.app import Dashboard

    assert isinstance(app, Dashboard)
    return offline(
        app.export_screenshot(title=f"jsctl dashboard — {app.size.width}×{app.size.height}")
    )


def offline(svg: str) -> str:
    """The picture without the web fonts that the exporter names; local ones are used."""
    import re

    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def text_of(app: object) -> str:
    """The characters of the screen, line by line, without trailing blanks."""
    return "\n".join("".join(one.text for one in line).rstrip() for line in lines_of(app)) + "\n"


def lines_of(app: object) -> list[list[Segment]]:
    """The cells of the screen, with their styles."""
    from jsctl.dashboard.app import Dashboard

    assert isinstance(app, Dashboard)
    return [list(strip) for strip in app.screen._compositor.render_strips()]
