"""Charts of results as SVG or PNG, and one HTML page with all tables and charts.

Matplotlib is imported when a chart is drawn, not before, and never its global state.
"""

import html
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsctl.errors import JsctlError
from jsctl.spark.pipeline.jobs.model import Chart, Result, Table, Unit
from jsctl.spark.pipeline.shown import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6000", "#444444")
"""Told apart with any kind of colour vision."""
SIZE_INCHES = (9.0, 4.5)
BARS_MAX = 40
LABEL_CHARACTERS_MAX = 40
HORIZONTAL_FROM = 12
"""Longest label, in characters, that still stands below an upright bar."""


def figure(chart: Chart) -> "Figure":
    """The chart as a figure. Raises JsctlError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise JsctlError(
            "charts need the package matplotlib", hints=("pip install 'jsctl[spark]'",)
        ) from None
    made = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = made.add_subplot()
    axes.set_title(chart.title, loc="left", fontweight="bold")
    if not any(series.points for series in chart.series):
        axes.text(0.5, 0.5, "no data", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return made
    _DRAW[chart.kind](axes, chart)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if len(chart.series) > 1 or chart.kind == "lines":
        axes.legend(frameon=False, fontsize="small")
    return made


def write_chart(chart: Chart, path: Path) -> None:
    """The picture; the format follows the name. Raises JsctlError."""
    try:
        figure(chart).savefig(path, dpi=120)
    except OSError as error:
        raise JsctlError(f"{path}: {error.strerror}") from None


def as_svg(chart: Chart) -> str:
    """The picture as text for a page."""
    stream = io.StringIO()
    figure(chart).savefig(stream, format="svg")
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _bars(axes: "Axes", chart: Chart) -> None:
    labels = list(dict.fromkeys(str(x) for series in chart.series for x, _ in series.points))
    labels = labels[:BARS_MAX]
    across = max(map(len, labels)) > HORIZONTAL_FROM or len(labels) > HORIZONTAL_FROM
    width = 0.8 / len(chart.series)
    for at, series in enumerate(chart.series):
        values = {str(x): y for x, y in series.points}
        heights = [values.get(label, 0) for label in labels]
        places = [n + (at - (len(chart.series) - 1) / 2) * width for n in range(len(labels))]
        colour = COLOURS[at % len(COLOURS)]
        if across:
            axes.barh(places, heights, width, label=series.label, color=colour)
        else:
            axes.bar(places, heights, width, label=series.label, color=colour)
    cut = [_cut(label) for label in labels]
    value_axis, name_axis = (axes.xaxis, axes.yaxis) if across else (axes.yaxis, axes.xaxis)
    name_axis.set_ticks(range(len(labels)), cut)
    name_axis.set_tick_params(labelsize="small")
    if across:
        axes.invert_yaxis()
    _scale(value_axis, chart.unit)
    (axes.set_ylabel if across else axes.set_xlabel)(chart.x_title)


def _lines(axes: "Axes", chart: Chart) -> None:
    for at, series in enumerate(chart.series):
        xs: list[Any] = [x for x, _ in series.points]
        if chart.times:
            xs = [datetime.fromtimestamp(x, UTC) for x in xs]
        ys = [y for _, y in series.points]
        colour = COLOURS[at % len(COLOURS)]
        axes.plot(xs, ys, label=series.label, color=colour, marker=".", markersize=3)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="#dddddd")
    _scale(axes.yaxis, chart.unit)
    if chart.times:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()  # type: ignore[no-untyped-call] # has no types
        axes.xaxis.set_major_locator(locator)
        form = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call] # has no types
        axes.xaxis.set_major_formatter(form)
    axes.set_xlabel(chart.x_title or ("time, UTC" if chart.times else ""))


_DRAW: Mapping[str, Callable[["Axes", Chart], None]] = {"bars": _bars, "lines": _lines}


def _scale(axis: Any, unit: Unit) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

    if unit is Unit.BYTES:
        axis.set_major_locator(MultipleLocator(_byte_step(axis.get_view_interval()[1])))
    else:
        axis.set_major_locator(MaxNLocator(6, integer=unit is Unit.COUNT))
    axis.set_major_formatter(FuncFormatter(lambda value, _at: shown(value, unit)))
    axis.set_tick_params(labelsize="small")


def _byte_step(highest: float) -> int:
    """A power of two that makes four to eight steps."""
    return 1 << max(0, int(highest / 4).bit_length() - 1)


def _cut(label: str) -> str:
    if len(label) <= LABEL_CHARACTERS_MAX:
        return label
    return f"…{label[-LABEL_CHARACTERS_MAX:]}"


_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1c1c; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .7rem; text-align: left; }
td.n, th.n { text-align: right; } svg { max-width: 100%; height: auto; }
.note { color: #7a4b00; } nav a { margin-right: 1rem; }
@media (prefers-color-scheme: dark) { body { color: #e8e8e8; background: #16181c; }
  th, td { border-color: #3a3d44; } svg { background: #fff; } .note { color: #ffc766; } }
"""


def page(title: str, results: Sequence[Result]) -> str:
    """One page that needs nothing else: tables, charts, notes of all results."""
    links = "".join(f'<a href="#{one.job}">{html.escape(one.title)}</a>' for one in results)
    body = "".join(_section(one) for one in results)
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}'
        f"</title><style>{_STYLE}</style></head><body><h1>{html.escape(title)}</h1><p>{made}</p>"
        f"<nav>{links}</nav>{body}</body></html>\n"
    )


def _section(result: Result) -> str:
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in result.notes)
    charts = "".join(as_svg(chart) for chart in result.charts if result.history)
    tables = "".join(_table(table) for table in result.tables)
    title = html.escape(result.title)
    return f'<section id="{result.job}"><h2>{title}</h2>{notes}{charts}{tables}</section>'


def _table(table: Table) -> str:
    def mark(unit: Unit) -> str:
        return "" if unit is Unit.TEXT else ' class="n"'

    heads = "".join(f"<th{mark(one.unit)}>{html.escape(one.title)}</th>" for one in table.fields)
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{mark(one.unit)}>{html.escape(shown(row.get(one.key), one.unit))}</td>"
            for one in table.fields
        )
        + "</tr>"
        for row in table.rows
    )
    empty = f'<tr><td colspan="{len(table.fields)}">none</td></tr>' if not table.rows else ""
    caption = html.escape(table.title)
    return (
        f"<table><caption>{caption}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}{empty}</tbody></table>"
    )
