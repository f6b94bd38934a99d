# SPDX-License-Identifier: MIT OR Apache-2.0
"""A figure: its workload and device, how to draw it, and its claims.

Files are experiments/figures/NAME.toml, schema "steadyio.figure/1"; every key is described
in docs/reference/figures.md. Loading is strict: an unknown key, variant or point is an error.
A file with [[panel]] holds several figures (panels.py), named FIGURE-PANEL.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steady_lab.errors import SpecError
from steady_lab.figures.checks import Check, take_check
from steady_lab.figures.metric import LATENCIES, Metric
from steady_lab.figures.panels import (
    expand,
    take_points,
    take_settings,
    take_variants,
    with_points,
    with_variants,
)
from steady_lab.figures.quantity import (
    Alone,
    Cell,
    Quantity,
    take_alone,
    take_metric,
    take_quantity,
    take_variant,
)
from steady_lab.figures.rivals import Reason, take_reason
from steady_lab.figures.workload import Workload, parse_workload, read_workload
from steady_lab.paths import PROJECT
from steady_lab.toml_table import NAME_PATTERN, Point, Table, load_toml

FIGURE_SCHEMA = "steadyio.figure/1"
VALUE_MAX = 1e9
DETAIL_LATENCIES = ("p50", "p99", "p999", "max")
EXPERIMENTS = PROJECT / "experiments"
FILE_REFERENCE = r"[A-Za-z0-9._/-]{1,200}"


@dataclass(frozen=True)
class Plot:
    """How the figure is drawn; CCDF and percentiles are shown at `detail_point`."""

    x_label: str
    y_label: str
    y_metric: Metric
    cost_label: str
    cost_metric: Metric
    highlight: tuple[str, ...]
    detail_point: Point
    detail_label: str
    detail_latencies: tuple[str, ...]


@dataclass(frozen=True)
class Published:
    """A value that the source states for one cell, in the metric's unit, and its place there.

    `reason` explains a measured value that differs.
    """

    cell: Cell
    value: float
    where: str
    reason: str


@dataclass(frozen=True)
class Summary:
    """Sentences about the figure; `{name}` quotes one of `values`."""

    text: str
    values: dict[str, Quantity]


@dataclass(frozen=True)
class Figure:
    """A loaded figure spec with its workload, and where device and workload specs are."""

    where: str  # how to refer to it: its file's path, ending in NAME.toml
    raw: dict[str, Any]
    name: str
    title: str
    source: str
    text: str
    device_file: Path
    variant_device_files: dict[str, Path]  # of the variants that are on another device
    workload_file: Path
    workload: Workload
    settings: dict[str, int | str]  # what `workload` has in place of the file's values
    has_all_points: bool  # of the workload's file
    plot: Plot
    alone: Alone | None  # where the speeds of one class without the other are
    headline: tuple[str, ...]  # the variants of the short table
    headline_bound_ms: dict[str, float]  # of those that have a proved bound
    published: tuple[Published, ...]
    checks: tuple[Check, ...]
    rivals: tuple[Reason, ...]
    summary: Summary

    def device_file_of(self, variant: str) -> Path:
        """Return the spec of the device that a variant runs on."""
        return self.variant_device_files.get(variant, self.device_file)

    @property
    def shown_points(self) -> tuple[Point, ...]:
        """Return the sweep's points but those of [alone], which have one class only."""
        only = () if self.alone is None else (self.alone.rt, self.alone.bg)
        return tuple(point for point in self.workload.points if point not in only)

    @property
    def is_swept(self) -> bool:
        """Tell whether several points are shown; if not, the plot has latencies side by side."""
        return len(self.shown_points) > 1


def load_figures(reference: str | Path) -> list[Figure]:
    """Read the figures that a reference means; raises SpecError naming key, value, allowed.

    A reference is NAME (experiments/figures/NAME.toml: all its panels), NAME-PANEL (that one), or
    the same as a path that ends in .toml.
    """
    path = _figure_path(str(reference))
    if path.is_file():
        return _load_file(path)
    for file in sorted(path.parent.glob("*.toml")):
        if path.stem.startswith(f"{file.stem}-"):
            chosen = [figure for figure in _load_file(file) if figure.name == path.stem]
            if chosen:
                return chosen
    names = ", ".join(sorted(file.stem for file in path.parent.glob("*.toml"))) or "none"
    raise SpecError(
        f"{path}: cannot be read: no such file, nor a panel of a figure next to it (figures: "
        f"{names})"
    )


def load_figure(reference: str | Path) -> Figure:
    """Read the one figure that a reference means; raises SpecError also when there are several."""
    figures = load_figures(reference)
    if len(figures) > 1:
        names = ", ".join(figure.name for figure in figures)
        raise SpecError(f"{reference}: has panels: must be one of {names}")
    return figures[0]


def _figure_path(reference: str) -> Path:
    if reference.endswith(".toml"):
        return Path(reference)
    return EXPERIMENTS / "figures" / f"{reference}.toml"


def _load_file(path: Path) -> list[Figure]:
    raw = load_toml(path)
    table = Table(raw, str(path))
    if table.text("name", NAME_PATTERN) != path.stem:
        raise table.fail("name", f"the file's name, {path.stem!r}")
    return [_load_plain(plain, path) for plain in expand(raw, str(path))]


def _load_plain(raw: dict[str, Any], path: Path) -> Figure:
    """Read a figure without panels, and its workload with the figure's settings in it.

    `device`, `devices` and `workload` are names in experiments/devices and experiments/workloads,
    or, when they end in .toml, paths relative to the figure's file.
    """
    table = Table(raw, str(path))
    files = (
        _reference(table, "device", path, "devices"),
        _reference(table, "workload", path, "workloads"),
    )
    workload = read_workload(files[1], take_settings(table), str(path))
    workload = with_variants(workload, take_variants(table), str(path))
    figure = parse_figure(raw, str(path), files, parse_workload(workload, str(files[1])))
    if not table.has("devices"):
        return figure
    devices = table.table("devices")
    found = {name: _reference(devices, name, path, "devices") for name in raw["devices"]}
    return replace(figure, variant_device_files=found)


def parse_figure(
    raw: dict[str, Any], where: str, files: tuple[Path, Path], workload: Workload
) -> Figure:
    """Check a parsed figure without panels; `where` starts the text of a SpecError.

    `files` are the device's and the workload's spec; `workload` has the figure's settings in it,
    and its variants only.
    """
    table = Table(raw, where)
    table.choice("schema", (FIGURE_SCHEMA,))
    table.text("device", FILE_REFERENCE)
    table.text("workload", FILE_REFERENCE)
    _check_devices(table, workload)
    take_variants(table)  # `workload` has only these
    points = take_points(table)
    workload = replace(workload, points=with_points(workload.points, points, where))
    name = table.text("name", NAME_PATTERN)
    alone = take_alone(table, workload)
    figure = Figure(
        where=str(Path(where).with_name(f"{name}.toml")),
        raw=raw,
        name=name,
        title=table.text("title"),
        source=table.text("source"),
        text=table.text("text"),
        device_file=files[0],
        variant_device_files={},
        workload_file=files[1],
        workload=workload,
        settings=take_settings(table),
        has_all_points=points is None,
        plot=_plot(table.table("plot"), workload),
        alone=alone,
        headline=_some_variants(table, "headline", workload) if table.has("headline") else (),
        headline_bound_ms=_bounds_ms(table, workload),
        published=tuple(_published(item, workload) for item in table.tables("published")),
        checks=tuple(take_check(item, workload, alone) for item in table.tables("check")),
        rivals=tuple(take_reason(item, workload) for item in table.tables("rival")),
        summary=_summary(table.table("summary"), workload, alone),
    )
    _refuse_duplicates(table, "check", [check.name for check in figure.checks])
    table.close()
    return figure


def _bounds_ms(table: Table, workload: Workload) -> dict[str, float]:
    """Read `headline_bound_ms`: VARIANT = MS."""
    bounds = table.table("headline_bound_ms", default={})
    names = [variant.name for variant in workload.variants if bounds.has(variant.name)]
    found = {name: bounds.number(name, 0, 1e6) for name in names}
    bounds.close()
    return found


def _check_devices(table: Table, workload: Workload) -> None:
    """Check `devices`, which names the device of variants that are not on the figure's."""
    if not table.has("devices"):
        return
    devices = table.table("devices")
    for variant in workload.variants:
        if devices.has(variant.name):
            devices.text(variant.name, FILE_REFERENCE)
    devices.close()


def _reference(table: Table, key: str, figure: Path, folder: str) -> Path:
    value = table.text(key, FILE_REFERENCE)
    home = EXPERIMENTS / folder
    path = figure.parent / value if value.endswith(".toml") else home / f"{value}.toml"
    if not path.is_file():
        raise table.fail(key, f"the name of a file in {home}, or a path; {path} is not a file")
    return path


def _plot(table: Table, workload: Workload) -> Plot:
    plot = Plot(
        x_label=table.text("x_label"),
        y_label=table.text("y_label"),
        y_metric=take_metric(table, "y_metric"),
        cost_label=table.text("cost_label"),
        cost_metric=take_metric(table, "cost_metric"),
        highlight=_some_variants(table, "highlight", workload),
        detail_point=table.point("detail_point", workload.points),
        detail_label=table.text("detail_label"),
        detail_latencies=_detail_latencies(table),
    )
    table.close()
    return plot


def _detail_latencies(table: Table) -> tuple[str, ...]:
    if not table.has("detail_latencies"):
        return DETAIL_LATENCIES
    allowed = "a non-empty array of latencies out of " + ", ".join(LATENCIES)
    chosen = table.items("detail_latencies", allowed)
    if any(name not in LATENCIES for name in chosen):
        raise table.fail("detail_latencies", allowed)
    return tuple(chosen)


def _some_variants(table: Table, key: str, workload: Workload) -> tuple[str, ...]:
    names = [variant.name for variant in workload.variants]
    allowed = "a non-empty array of variants out of " + ", ".join(names)
    chosen = table.items(key, allowed)
    if any(name not in names for name in chosen):
        raise table.fail(key, allowed)
    return tuple(chosen)


def _published(table: Table, workload: Workload) -> Published:
    cell = Cell(
        take_variant(table, workload),
        table.point("point", workload.points),
        take_metric(table, "metric"),
    )
    value = table.number("value", 0, VALUE_MAX)
    published = Published(cell, value, table.text("where"), table.text("reason", default=""))
    table.close()
    return published


def _summary(table: Table, workload: Workload, alone: Alone | None) -> Summary:
    text = table.text("text")
    values: dict[str, Quantity] = {}
    for item in table.tables("value"):
        name = item.text("name", "[a-z][a-z0-9_]*")
        if name in values:
            raise item.fail("name", "different from the other values' names")
        values[name] = take_quantity(item, workload, alone)
        item.close()
    _check_placeholders(table, text, values)
    table.close()
    return Summary(text, values)


def _check_placeholders(table: Table, text: str, values: dict[str, Quantity]) -> None:
    try:
        used = [part[1:] for part in string.Formatter().parse(text) if part[1] is not None]
    except ValueError as error:
        raise table.fail("text", f"text with {{name}} placeholders ({error})") from error
    for name, format_spec, conversion in used:
        if name not in values or format_spec or conversion:
            raise table.fail("text", f"text quoting only {{{'}, {'.join(values)}}}, not {{{name}}}")
    unused = set(values) - {name for name, _, _ in used}
    if unused:
        raise table.fail("text", f"text that quotes the value {min(unused)!r}, or drop the value")


def _refuse_duplicates(table: Table, key: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"{table.where}: [[{key}]] name = {name!r}: must be used once")
