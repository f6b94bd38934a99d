# SPDX-License-Identifier: MIT OR Apache-2.0
"""A tune report in sentences."""

from __future__ import annotations

import math

from steady_lab.pages.trace_words import size_text
from steady_lab.pages.tune_candidates import chosen_names, knobs_text
from steady_lab.pages.tune_report import Contradiction, Goal, TunePoint, TuneReport

NS_PER_US = 1000


def us(ns: float) -> str:
    """Return a time in µs, as `steady tune` prints it."""
    return f"{ns / NS_PER_US:.1f}"


def quantile_name(percent: float) -> str:
    """Return the name of a quantile, such as p99.9."""
    return f"p{percent:g}"


def samples_needed(percent: float, interval_percent: float) -> int:
    """Return the least samples of which the largest is likely enough above the quantile."""
    outside = (1 - interval_percent / 100) / 2
    return math.ceil(math.log(outside) / math.log(percent / 100))


def goal_text(goal: Goal) -> str:
    """Return the goal, with the objective's name in the paper on K2 and SSDs."""
    tail = quantile_name(goal.quantile_percent)
    if goal.tail_ns_max is not None:
        name, greek = "O1", "α"
        text = f"the most throughput, with a {tail} of at most {us(goal.tail_ns_max)} µs"
    else:
        name, greek = "O2", "β"
        text = f"the shortest {tail}, with at least {goal.mib_s_min:.2f} MiB/s"
    if goal.limit_percent_of_none is None:
        text += f" (objective {name}, with an absolute limit)"
    else:
        percent = f"{goal.limit_percent_of_none:g} %"
        text += f": {percent} of that without a scheduler (objective {name}, {greek} = {percent})"
    near = f"Results within {goal.near_percent:g} % of the best count as ties."
    return f"Wanted: {text}." + (f" {near}" if goal.near_percent else "")


def load_text(report: TuneReport) -> str:
    """Return the device, the load and what all measurements had."""
    setup, device = report.setup, report.setup.device
    part = "" if device["name"] == device["disk"] else f" of {device['disk']}"
    facts = [*([device["model"]] if device["model"] else []), size_text(device["size_bytes"])]
    text = f"Device {device['name']}{part} ({', '.join(facts)}). "
    text += f"Workload {setup.workload['name']}{setup.at}: {' next to '.join(setup.jobs)}."
    fixed = {name: values[0] for name, values in report.knobs.items() if len(values) == 1}
    shared = [f"{name}={value}" for name, value in (fixed | report.settings).items()]
    return text + (f" The same in all measurements: {', '.join(shared)}." if shared else "")


def runs_text(report: TuneReport) -> str:
    """Return how many runs it took."""
    runs = len(report.measurements)
    text = f"{len(report.points)} of {report.candidates} candidates measured"
    without = ", one of them without a scheduler" if report.none else ""
    return f"{text}, in {runs} {'run' if runs == 1 else 'runs'}{without}."


def found_text(report: TuneReport) -> str:
    """Return the pick or the nearest candidate, and its certainty."""
    point = report.picked_or_nearest
    if point is None:
        return "No pick: no measured candidate keeps the limit."
    values = f"{knobs_text(report, point.knobs)}, with {_figures_text(report, point)}"
    if not report.pick:
        return f"No pick: no measured candidate keeps the limit; {values} comes nearest."
    return f"Picked: {values}.{_certainty_text(report, point)}"


def _certainty_text(report: TuneReport, point: TunePoint) -> str:
    if point.is_certain is not False:
        return ""
    if not all(each.has_interval for each in (point, report.none) if each):
        return " Uncertain: too few samples."
    if report.goal.limit_percent_of_none is None:
        return " Uncertain: the limit lies within its interval."
    return " Uncertain: its interval and that of the limit overlap."


def _figures_text(report: TuneReport, point: TunePoint) -> str:
    tail = quantile_name(report.goal.quantile_percent)
    return f"a {tail} of {us(point.tail_ns)} µs and {point.mib_s:.2f} MiB/s"


def verdict_text(point: TunePoint) -> str:
    """Return whether a measurement keeps the limit."""
    verdict = "kept" if point.is_met else "not kept"
    return f"{verdict}, uncertain" if point.is_certain is False else verdict


def mark_text(report: TuneReport, point: TunePoint) -> str:
    """Return the marks of a measured candidate."""
    is_pick = report.pick is not None and report.pick.knobs == point.knobs
    marks = {"pick": is_pick, "nearest": report.nearest == point.knobs}
    marks["frontier"] = point.is_frontier
    return ", ".join(word for word, applies in marks.items() if applies)


def label_text(report: TuneReport, point: TunePoint) -> str:
    """Return the values of the knobs with a choice, for a point of the plot."""
    if not point.knobs:
        return "none"
    return ", ".join(str(point.knobs[name]) for name in chosen_names(report))


def flaw_texts(report: TuneReport) -> list[str]:
    """Return what weakens the result."""
    flaws = []
    tail = quantile_name(report.goal.quantile_percent)
    short = sum(not point.has_interval for point in report.measurements)
    if short:
        flaws.append(
            f"Too few samples: a {report.interval_percent:g} % interval of the {tail} needs "
            f"{report.samples_needed:,}; {short} of {len(report.measurements)} measurements have "
            "fewer."
        )
    errors = sum(point.errors for point in report.measurements)
    flaws += [f"{errors} I/Os failed."] if errors else []
    for quantity in dict.fromkeys(found.quantity for found in report.contradictions):
        pairs = [found for found in report.contradictions if found.quantity == quantity]
        flaws.append(_contradiction_text(report, pairs))
    return flaws


def _contradiction_text(report: TuneReport, pairs: list[Contradiction]) -> str:
    lower, upper = (knobs_text(report, knobs) for knobs in (pairs[0].lower, pairs[0].upper))
    what = "a longer tail" if pairs[0].quantity == "tail" else "more throughput"
    others = f" ({len(pairs) - 1} other pairs as well)" if len(pairs) > 1 else ""
    return (
        f"Not monotonic: {lower} has {what} than {upper}{others}; nothing was concluded from its "
        "rise."
    )
