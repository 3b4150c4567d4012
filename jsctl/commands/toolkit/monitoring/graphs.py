"""Curves that grow each second: on the whole terminal, or taken for a picture."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

from jsctl.api.errors import ApiError
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import SHARED_MODE, save
from jsctl.commands.toolkit.invocation.watching import repeated
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, NeedsConfirmation, UsageError
from jsctl.render.charts import line_chart, png, svg
from jsctl.render.humanize import number

ROUND_S = 1
KEPT = 1000
SIDE_MIN = 20
"""Columns and lines that a terminal needs for curves."""
LABELS = 14
HEAD = 4
BELOW = 3
"""Columns for the values of the axis, lines above all, and beside each curve."""
Sample = Callable[[], Awaitable[Mapping[str, float]]]


def whole(value: float) -> str:
    """A count."""
    return number(int(value))


def rate(value: float) -> str:
    """Per second."""
    return f"{value:,.2f}"


@dataclass(slots=True)
class Curve:
    """Values of one key of a sample; with `per_second` how fast it grows."""

    key: str
    caption: str
    text: Callable[[float], str] = whole
    per_second: bool = False
    values: "deque[float]" = field(default_factory=lambda: deque(maxlen=KEPT))
    last: tuple[float, float] | None = None

    def add(self, value: float, now: float) -> None:
        """The next one; `now` in seconds."""
        if not self.per_second:
            self.values.append(value)
            return
        if self.last is not None:
            before, then = self.last
            self.values.append(max(0.0, value - before) / max(1e-9, now - then))
        self.last = value, now


def needs_terminal(call: Call) -> None:
    """Raises NeedsConfirmation where curves cannot be seen, and no picture is asked for."""
    if not _pictures(call) and not call.prompts.possible:
        raise NeedsConfirmation("can only graph data on an interactive terminal")


async def graph(call: Call, title: str, curves: list[Curve], sample: Sample) -> int:
    """Draws until Ctrl-C, or with `--svg` or `--png` takes so many samples for a picture."""
    if _pictures(call):
        await _picture(call, title, curves, sample)
        return 0
    if call.output.width < SIDE_MIN or call.output.height < SIDE_MIN:
        raise UsageError("please increase terminal dimensions")

    async def draw(call: Call) -> None:
        await _take(curves, sample)
        width = call.output.width - LABELS
        height = max(2, (call.output.height - HEAD) // len(curves) - BELOW)
        call.output.print(f"{title}\n")
        for curve in curves:
            shown = list(curve.values)[-width:]
            text = line_chart(shown, curve.caption, curve.text, width=width, height=height)
            call.output.print(text + "\n")

    return await repeated(call, draw, ROUND_S)


async def _take(curves: list[Curve], sample: Sample) -> None:
    found, now = await sample(), monotonic()
    for curve in curves:
        curve.add(found[curve.key], now)


def _pictures(call: Call) -> dict[str, Path]:
    """Where to, by kind."""
    return {kind: Path(call.text(kind)) for kind in ("svg", "png") if call.given(kind)}


def _check_pictures(targets: Mapping[str, Path]) -> None:
    """Before anybody waits for samples. Raises UsageError."""
    for target in targets.values():
        if not target.parent.is_dir():
            raise UsageError(f"path '{target.parent}' does not exist")
    if "png" in targets and find_spec("resvg_py") is None:
        raise UsageError(
            "--png needs resvg-py: pip install 'jsctl[png]'",
            hints=("--svg draws the same picture and needs nothing",),
        )


async def _picture(call: Call, title: str, curves: list[Curve], sample: Sample) -> None:
    targets, count = _pictures(call), call.integer("samples")
    if count < 2:
        raise UsageError("--samples: a curve needs 2 of them")
    _check_pictures(targets)
    await _take(curves, sample)
    for _ in range(count):
        await asyncio.sleep(ROUND_S)
        try:
            await _take(curves, sample)
        except (ApiError, JsctlError) as error:
            call.output.log(str(error))
    text = svg(title, [(curve.caption, curve.values, curve.text) for curve in curves])
    for kind, target in targets.items():
        save(target, png(text) if kind == "png" else text, mode=SHARED_MODE)
        call.output.note(f"Wrote {target}")
