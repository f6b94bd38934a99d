# SPDX-License-Identifier: MIT OR Apache-2.0
"""A picture of traced loads: per place and size one bar for each, cut into four spans.

The e.MMC analysis paper's Figures 4 to 7 draw times. Here the slowest load takes far longer than
the fastest, so bars are shares, and the mean time stands behind each.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from steady_lab.figures.traced_loads import load_traced_loads
from steady_lab.pages.picture import Panel, canvas, svg_text
from steady_lab.pages.trace_plot import SPANS
from steady_lab.pages.trace_words import time_text
from steady_lab.pages.traced_runs import TracedRun, all_keys, read_runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = Panel(height=2.4, left=1.5, right=0.6, bottom=0.3)
BAR = 0.68  # of the distance between bars


def spans_svg(name: str, results: Path) -> str:
    """Return the picture of experiments/traces/NAME.toml from its records; raises LabError."""
    loads = load_traced_loads(name)
    runs = read_runs(all_keys(loads), results / f"traces-{name}")
    shown = [(place, size_kib) for place in loads.places for size_kib in place.ios]
    with canvas(PANEL, len(shown), len(SPANS)) as (figure, panels):
        for axes, (place, size_kib) in zip(panels, shown, strict=True):
            axes.set_title(f"{place.title}, {size_kib} KiB")
            _draw(axes, runs.of(place, size_kib))
        keys = panels[0].containers
        return svg_text(figure, keys)


def _draw(axes: Axes, runs: list[TracedRun]) -> None:
    rows, left = range(len(runs)), [0.0] * len(runs)
    for name, (title, colour) in SPANS.items():
        # Computed from the means, because the shares in the record are rounded.
        own = [100 * run.span(name)["mean_ns"] / run.group["total"]["mean_ns"] for run in runs]
        axes.barh(rows, own, BAR, left, color=colour, label=title)
        left = [start + share for start, share in zip(left, own, strict=True)]
    for row, run in enumerate(runs):
        axes.text(102, row, time_text(run.group["total"]["mean_ns"]), va="center_baseline")
    axes.set_yticks(rows, labels=[run.key.load.title for run in runs])
    axes.set_xticks(range(0, 101, 25), labels=[f"{share} %" for share in range(0, 101, 25)])
    axes.set(xlim=(0, 100), ylim=(len(runs) - 0.5, -0.5))
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
