# SPDX-License-Identifier: MIT OR Apache-2.0
"""A picture of traced loads: per place and size one bar for each, cut into S5's four spans.

S5's Figures 4 to 7 draw times. Here the slowest load takes far longer than the fastest, so bars are
shares, and the mean time stands behind each.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from steady_lab.figures.traced_loads import PLACES, load_traced_loads
from steady_lab.pages.svg import FONT, GRID, INK
from steady_lab.pages.trace_plot import SPANS
from steady_lab.pages.trace_words import time_text
from steady_lab.pages.traced_runs import TracedRun, all_keys, read_runs

PANEL_WIDTH_PX, BAR_LEFT_PX, BAR_WIDTH_PX = 460, 152, 236
ROW_PX, BAR_PX, TOP_PX, BOTTOM_PX = 22, 15, 34, 30
LEGEND_PX = 34
TICKS_PERCENT = (0, 25, 50, 75, 100)


def spans_svg(name: str, results: Path) -> str:
    """Return the picture of experiments/traces/NAME.toml from its records; raises LabError."""
    loads = load_traced_loads(name)
    runs = read_runs(all_keys(loads), results / f"traces-{name}")
    panel_px = TOP_PX + ROW_PX * len(loads.loads) + BOTTOM_PX
    width = PANEL_WIDTH_PX * len(loads.sizes_kib)
    height = panel_px * len(PLACES) + LEGEND_PX
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" {FONT} font-size="11" fill="{INK}">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for row, (place, title) in enumerate(PLACES.items()):
        for column, size_kib in enumerate(loads.sizes_kib):
            at = f"{column * PANEL_WIDTH_PX} {row * panel_px}"
            parts.append(f'<g transform="translate({at})">')
            parts += _panel(f"{title}, {size_kib} KiB", runs.of(place, size_kib))
            parts.append("</g>")
    return "\n".join([*parts, *_legend(width, height), "</svg>", ""])


def _panel(title: str, runs: list[TracedRun]) -> list[str]:
    bottom = TOP_PX + ROW_PX * len(runs)
    parts = [f'<text x="12" y="18" font-size="12" font-weight="bold">{escape(title)}</text>']
    for percent in TICKS_PERCENT:
        x = BAR_LEFT_PX + BAR_WIDTH_PX * percent / 100
        parts.append(f'<path d="M{x:g} {TOP_PX}V{bottom}" stroke="{GRID}"/>')
        text = f'<text x="{x:g}" y="{bottom + 14}" text-anchor="middle">{percent} %</text>'
        parts.append(text)
    for n, run in enumerate(runs):
        parts += _bar(run, TOP_PX + ROW_PX * n + (ROW_PX - BAR_PX) / 2)
    return parts


def _bar(run: TracedRun, y: float) -> list[str]:
    title, middle = escape(run.key.load.title), y + BAR_PX / 2 + 4
    parts = [f'<text x="{BAR_LEFT_PX - 6}" y="{middle:g}" text-anchor="end">{title}</text>']
    left = float(BAR_LEFT_PX)
    for name, (_, colour) in SPANS.items():
        # Of the means, because the shares in the record are rounded.
        part = run.span(name)["mean_ns"] / run.group["total"]["mean_ns"]
        wide = BAR_WIDTH_PX * part
        place = f'x="{left:.1f}" y="{y:g}" width="{wide:.1f}" height="{BAR_PX}"'
        parts.append(f'<rect {place} fill="{colour}"/>')
        left += wide
    time = time_text(run.group["total"]["mean_ns"])
    parts.append(f'<text x="{BAR_LEFT_PX + BAR_WIDTH_PX + 6}" y="{middle:g}">{time}</text>')
    return parts


def _legend(width: int, height: int) -> list[str]:
    parts = []
    for n, (title, colour) in enumerate(SPANS.values()):
        x, y = 20 + n * (width - 20) // len(SPANS), height - 22
        parts.append(f'<rect x="{x}" y="{y}" width="14" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 20}" y="{y + 10}">{escape(title)}</text>')
    return parts
