# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of traced loads: where their time goes, published values, and what `steady model` gives.

The columns are the spans (Figures 4 to 7) and speeds (Table 2) of the e.MMC analysis paper, of
means, as there; the spread, which it does not show, is next to it. A load has several runs: shown
is that in the middle, and of the share of software the smallest and the largest, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steady_lab.errors import LabError
from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.figures.table import TextTable, format_number
from steady_lab.figures.traced_loads import Place, TracedLoads, load_traced_loads
from steady_lab.pages.spans_findings import findings_table
from steady_lab.pages.trace_plot import SPANS
from steady_lab.pages.trace_words import cause_texts, time_text
from steady_lab.pages.traced_runs import TracedRun, TracedRuns, all_keys, read_runs
from steady_lab.toml_table import load_toml

STATISTICS = ("p50", "p99", "p999", "max")
NS_PER_US = 1000
US_PER_S = 1_000_000
# The board of Table 2.
TABLE_2_BOARD = "Jetson TX1"


def spans_markdown(name: str, results: Path) -> str:
    """Return where time goes in experiments/traces/NAME.toml, next to published numbers.

    It is read from the records; raises LabError.
    """
    loads, runs = _read(name, results)
    parts = []
    for place in loads.places:
        machine = runs.machines[place.name]
        parts.append(
            f"**{place.title}**: Linux {machine.kernel}, CPUs: {machine.cpus}, fio {machine.fio}."
        )
        parts += [
            shares_table(loads, runs.of(place, kib), f"{place.title}, {kib} KiB").markdown()
            for kib in place.ios
        ]
    return "\n\n".join([*parts, *_findings(name, loads, runs)])


def spans_findings_markdown(name: str, results: Path) -> str:
    """Return the paper's statements on the spans, and its Table 2, next to ours; raises LabError.

    Reads all runs, as spans_markdown() does.
    """
    return "\n\n".join(_findings(name, *_read(name, results)))


def _findings(name: str, loads: TracedLoads, runs: TracedRuns) -> list[str]:
    tables = [findings_table(runs, [place for place in loads.places if place.ext4])]
    boards = [place for place in loads.places if place.board == TABLE_2_BOARD]
    tables += [_table_2(name, runs.of_place(place)) for place in boards]
    return [*(table.markdown() for table in tables), _agreement(runs)]


def spans_tables_markdown(name: str, results: Path) -> str:
    """Return speeds and the spread of the same runs; raises LabError."""
    loads, runs = _read(name, results)
    parts = [speeds_table(runs).markdown()]
    parts += [_spread_of_place(runs, place) for place in loads.places]
    return "\n\n".join(parts)


def _read(name: str, results: Path) -> tuple[TracedLoads, TracedRuns]:
    loads = load_traced_loads(name)
    return loads, read_runs(all_keys(loads), results / f"traces-{name}")


def shares_table(loads: TracedLoads, runs: list[TracedRun], caption: str) -> TextTable:
    """Return the mean time of runs of a place, and which span has which part of it."""
    board = runs[0].key.place.board
    body = []
    for run in runs:
        shares = [f"{run.span(name)['share_percent']:.1f}" for name in SPANS]
        times = [str(run.group["count"]), f"{run.total_us:.1f}"]
        software = [means["software_percent"] for means in run.of_runs]
        cells = [f"{run.group['software_percent']:.1f}", f"{min(software)} to {max(software)}"]
        if board:
            cells.append(loads.printed_share(board, run.key.size_kib, run.key.load.name))
        body.append([run.key.load.title, *times, *shares, *cells])
    header = ["", "count", "mean us", *(f"{name} %" for name in SPANS)]
    header += ["software %", f"in {len(runs[0].of_runs)} runs"]
    return TextTable(f"**{caption}**", [*header, *(["paper"] if board else [])], body)


def speeds_table(runs: TracedRuns) -> TextTable:
    """Return the paper's three speeds of each load: two of the model, one measured (a median)."""
    body = []
    for run in runs.runs:
        theory, measured = run.limits_mib_s["single_thread"], run.median("mib_s")
        speeds = (theory, run.limits_mib_s["no_device"], measured)
        outside_us = run.key.size_kib / 1024 / measured * US_PER_S - run.total_us
        body.append(
            [f"{run.key.place.name}, {run.key.size_kib} KiB {run.key.load.title}"]
            + [format_number(mib_s) for mib_s in speeds]
            + [f"{measured / theory:.3f}", f"{outside_us:.1f}", _cost_of_tracing(run)]
        )
    header = ["", "single thread, model", "no device time, model", "measured", "measured / model"]
    header += ["outside of the spans, us per I/O", "tracing, us per I/O"]
    return TextTable("**One thread's speed in MiB/s, of the same runs**", header, body)


def _cost_of_tracing(run: TracedRun) -> str:
    """By how much longer an I/O takes than without it, which was measured in the lab."""
    if not run.key.place.device:
        return "-"
    per_io_us = run.key.size_kib / 1024 * US_PER_S
    return f"{per_io_us / run.median('mib_s') - per_io_us / run.median('untraced_mib_s'):.1f}"


def _agreement(runs: TracedRuns) -> str:
    ratios = sorted(run.median("mib_s") / run.limits_mib_s["single_thread"] for run in runs.runs)
    text = (
        f"Measured speed is {ratios[0]:.3f} to {ratios[-1]:.3f} of what `steady model` makes of "
        f"the spans, {ratios[len(ratios) // 2]:.3f} in the median of the {len(ratios)} loads. The "
        "rest is time between two calls, fio's own."
    )
    for run in (run for run in runs.runs if run.group["count"] != run.key.ios):
        text += (
            f" Of {run.key.name}, {run.group['count']} of {run.key.ios} calls are in the spans: "
            "the others led to no request of their own."
        )
    return text


def _table_2(name: str, runs: list[TracedRun]) -> TextTable:
    """Return request-pre, device and post next to the spans that the paper's Table 2 prints."""
    path = EXPERIMENTS / "spans" / f"{name}.toml"
    printed = {entry["name"]: entry for entry in load_toml(path)["spans"]}
    body = []
    for run in runs:
        theirs = printed.get(run.key.load.table)
        if not run.key.load.table or run.key.size_kib << 10 != (theirs or {}).get("size_bytes"):
            continue
        if theirs is None:
            raise LabError(f"{path}: has no spans named {run.key.load.table!r}")
        own_us = [run.span(span)["mean_ns"] / NS_PER_US for span in SPANS]
        ours = [own_us[0] + own_us[1], *own_us[2:]]
        printed_us = [float(theirs[key]) for key in ("pre_us", "device_us", "post_us")]
        cells = [[_with_share(us, sum(spans)) for us in spans] for spans in (printed_us, ours)]
        body.append([run.key.load.title, *(x for pair in zip(*cells, strict=True) for x in pair)])
    header = ["128 KiB, in the lab"]
    for span in ("request-pre", "device", "post"):
        header += [f"{span}, paper us", "here us"]
    return TextTable(f"**The paper's Table 2 ({TABLE_2_BOARD}), for comparison**", header, body)


def _with_share(us: float, total_us: float) -> str:
    return f"{us:.0f} ({100 * us / total_us:.0f} %)"


def _spread_of_place(runs: TracedRuns, place: Place) -> str:
    own = runs.of_place(place)
    spread = TextTable(
        f"**{place.title}**; p50 / p99 / p99.9 / max in us",
        ["", *SPANS, "total", "count"],
        [
            [_title(run), *(_spread(run.span(name)) for name in SPANS)]
            + [_spread(run.group["total"]), str(run.group["count"])]
            for run in own
        ],
    )
    longest = [
        f"- {_title(run)}, {time_text(run.worst['total_ns'])}: {'; '.join(cause_texts(run.worst))}"
        for run in own
    ]
    return "\n".join([spread.markdown(), "", "The longest of each, and why:", "", *longest])


def _title(run: TracedRun) -> str:
    return f"{run.key.size_kib} KiB {run.key.load.title}"


def _spread(figures: dict[str, Any]) -> str:
    return " / ".join(f"{figures[f'{name}_ns'] / NS_PER_US:.1f}" for name in STATISTICS)
