# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures for Markdown pages: the report's plots (plot.py), drawn by matplotlib as SVG files.

One column of the report (sweep, cost or CCDF) over several panels of a figure, with one legend. The
same numbers give the same bytes on every machine: matplotlib's own settings and fonts, no date.
matplotlib is imported where it draws, because it needs numpy, which does not run on the oldest
x86-64 processors.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Plot = dict[str, Any]
# What Plotly calls a marker.
MARKERS = {
    **{"circle": "o", "square": "s", "diamond": "D", "pentagon": "p", "hexagon": "h"},
    **{"triangle-up": "^", "triangle-down": "v", "triangle-left": "<", "triangle-right": ">"},
    **{"cross": "P", "x": "X", "star": "*"},
}
RAISED = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
INK, GRID = "#1a1a1a", "#e6e6e6"
SETTINGS: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # of the same widths, where a reader has one
    "font.size": 8.5,
    "grid.color": GRID,
    "legend.edgecolor": "none",
    "lines.scale_dashes": False,
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "steadyio",
    "text.color": INK,
    "xtick.bottom": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "ytick.left": False,
}
# Lengths are in inches.
COLUMNS = 2
LEGEND_LINE, LEGEND_COLUMNS = 0.2, 4
TITLE_LINE, TITLE_CHARACTERS = 0.16, 44
Y_LABEL = -0.13  # from the axes, in parts of their width, however long the ticks' labels are
POINTS_PER_PX = 0.75


@dataclass(frozen=True)
class Panel:
    """The size of a panel, and what of it is around its axes, in inches."""

    width: float = 4.3
    height: float = 2.8
    left: float = 0.64
    right: float = 0.12
    bottom: float = 0.5
    top: float = 0.3


def column_svg(plots: Sequence[tuple[str, Plot]], column: int) -> str:
    """Return one column (0 sweep, 1 cost, 2 CCDF) of several titled plots as an SVG file."""
    axis = f"x{column + 1 if column else ''}"
    own = [[trace for trace in plot["traces"] if trace["xaxis"] == axis] for _, plot in plots]
    named: dict[str, dict[str, Any]] = {}
    for trace in sorted(sum(own, []), key=lambda trace: trace["legendrank"]):
        # A variant's line and the marker at its end can be two traces.
        named[trace["name"]] = named.get(trace["name"], {}) | trace
    titles = [textwrap.fill(title, TITLE_CHARACTERS) for title, _ in plots]
    more_lines = max(title.count("\n") for title in titles)
    panel = Panel(height=2.8 + TITLE_LINE * more_lines, top=0.3 + TITLE_LINE * more_lines)
    with canvas(panel, len(plots), len(named)) as (figure, panels):
        for axes, title, (_, plot), traces in zip(panels, titles, plots, own, strict=True):
            axes.set_title(title)
            axes.yaxis.set_label_coords(Y_LABEL, 0.5)
            for trace in traces:
                _draw(axes, trace)
            for which in "xy":
                _set_axis(axes, which, plot["panels"][column][which])
        return svg_text(figure, [_key(trace) for trace in named.values()])


@contextmanager
def canvas(panel: Panel, count: int, keys: int) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give a figure with panels side by side, and room for a legend below them."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    # Those of the system differ from machine to machine.
    own = matplotlib.get_data_path()
    fontManager.ttflist = [font for font in fontManager.ttflist if font.fname.startswith(own)]
    columns = min(COLUMNS, count)
    width = columns * panel.width
    legend = LEGEND_LINE * math.ceil(keys / LEGEND_COLUMNS) + 0.1
    height = math.ceil(count / columns) * panel.height + legend
    inner_width = (panel.width - panel.left - panel.right) / width
    inner_height = (panel.height - panel.bottom - panel.top) / height
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        figure, made = Figure(figsize=(width, height)), []
        for n in range(count):
            x = n % columns * panel.width + panel.left
            y = height - (n // columns + 1) * panel.height + panel.bottom
            made.append(figure.add_axes((x / width, y / height, inner_width, inner_height)))
        yield figure, made


def svg_text(figure: Figure, keys: Sequence[Any]) -> str:
    """Return the figure as an SVG file, with a legend of these keys below its panels."""
    figure.legend(handles=keys, loc="lower center", ncols=LEGEND_COLUMNS, handlelength=3.4)
    file = io.StringIO()
    without = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", metadata=without)
    # Each marker repeats all of its shape's style but the fill, which is first: much of the file.
    text = re.sub(r'(<use [^>]*style="fill[^;"]*);[^"]*', r"\1", file.getvalue())
    # For coordinates a hundredth of a point is enough.
    text = re.sub(r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}", text)
    return text.replace(" \n", "\n")


def _draw(axes: Axes, trace: dict[str, Any]) -> None:
    points = [(x, y) for x, y in zip(trace["x"], trace["y"], strict=True) if y and y > 0]
    colours = trace.get("marker", {}).get("color")
    if not isinstance(colours, list):
        axes.plot([x for x, _ in points], [y for _, y in points], **_look(trace))
        return
    for (x, y), colour in zip(points, colours, strict=True):
        axes.plot([x], [y], **_look(trace) | {"color": colour})


def _key(trace: dict[str, Any]) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=trace["name"], **_look(trace))


def _look(trace: dict[str, Any]) -> dict[str, Any]:
    """Return in matplotlib's words how a trace is drawn; one with a colour per point in ink."""
    look: dict[str, Any] = {"linestyle": "none"}
    if line := trace.get("line"):
        lengths = [float(each) * POINTS_PER_PX for each in re.findall(r"\d+", line["dash"])]
        look["color"] = line["color"]
        look["linestyle"] = (0, lengths) if lengths else "solid"
        look["linewidth"] = line["width"] * POINTS_PER_PX
        look["drawstyle"] = "steps-pre" if line.get("shape") == "vh" else "default"
    if marker := trace.get("marker"):
        symbol = marker["symbol"].removesuffix("-open")
        look["color"] = INK if isinstance(marker["color"], list) else marker["color"]
        look["marker"] = MARKERS[symbol]
        look["markersize"] = marker["size"] * POINTS_PER_PX
        look["markeredgewidth"] = marker["line"]["width"] * POINTS_PER_PX
        look["fillstyle"] = "full" if symbol == marker["symbol"] else "none"
    return look


def _set_axis(axes: Axes, which: str, raw: dict[str, Any]) -> None:
    axes.set(**{f"{which}label": raw["title"]["text"]})
    if raw["type"] == "category":
        return
    axes.set(**{f"{which}scale": raw["type"]})
    axes.minorticks_off()
    if "tickvals" in raw:
        texts = [_raised(text) for text in raw["ticktext"]]
        axes.set(**{f"{which}ticks": raw["tickvals"], f"{which}ticklabels": texts})
    if "range" in raw:
        axes.set(**{f"{which}lim": [10**end for end in raw["range"]]})


def _raised(text: str) -> str:
    """Return the text of a tick with what Plotly marks as raised in raised characters."""
    return re.sub("<sup>(.*?)</sup>", lambda match: match[1].translate(RAISED), text)
