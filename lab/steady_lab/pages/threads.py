# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of threads on a host (a workload's [host]): the lab's speeds next to `steady model`'s.

The model's stages do one request at a time, so it is for hosts with `pre_at_once = 1`. Its device
span is what the card takes for one request.
"""

from __future__ import annotations

from steady_lab.devices.spec import load_device
from steady_lab.devices.transfer_fit import transfer_us
from steady_lab.errors import LabError
from steady_lab.figures.metric import METRICS, Metric
from steady_lab.figures.rows import Measurements
from steady_lab.figures.spec import Figure
from steady_lab.figures.table import TextTable, format_number
from steady_lab.pages.published import panel_name
from steady_lab.root.steady_command import steady_json
from steady_lab.toml_table import Point

THROUGHPUT = METRICS["rt.mib_s"]
STATISTICS = ("p50", "p99", "p999", "max")


def threads_markdown(figure: Figure, measured: Measurements) -> str:
    """Return speeds and latencies by number of threads; raises LabError without a [host]."""
    titles = [variant.title for variant in figure.workload.variants]
    predicted, points = predicted_mib_s(figure), figure.workload.points
    speeds = TextTable(
        f"**{panel_name(figure).capitalize()}**; MiB/s",
        ["threads", "model", *titles, f"{titles[-1]} / {titles[0]}"],
        [_speeds(figure, measured, threads, predicted.get(threads)) for threads in points],
    )
    latencies = TextTable(
        "p50 / p99 / p99.9 / max in ms, and count",
        ["threads", *titles, "count"],
        [_latencies(figure, measured, threads) for threads in points],
    )
    return f"{speeds.markdown()}\n\n{latencies.markdown()}"


def predicted_mib_s(figure: Figure) -> dict[Point, float]:
    """Return the model's speed for each number of threads; nothing if the model is not for it.

    Raises LabError, also if the workload has no [host].
    """
    workload = figure.workload.raw
    if "host" not in workload:
        raise LabError(f"{figure.name}: its workload has no [host]")
    host, (job,) = workload["host"], workload["job"]
    if host["pre_at_once"] != 1:
        return {}
    op = "write" if job["op"].endswith("write") else "read"
    device_us = transfer_us(load_device(figure.device_file), op, job["bs_kib"])
    # As device/bench/src/host/load.rs adds it; the model has no queue in the card.
    pre_us = host["pre_us"] + host.get("command_us", 0) * (2 if op == "write" else 1)
    cores = "one_core" if host["cores"] == 1 else "many_cores"
    found = {}
    for threads in figure.workload.points:
        document = steady_json(
            *("model", f"--size={job['bs_kib']}K", f"--device-us={device_us:g}"),
            *(f"--pre-us={pre_us}", f"--post-us={host['post_us']}"),
            *(f"--depth={threads}", f"--requests={workload['length']['ios']}", "--json"),
        )
        found[threads] = float(document["predictions"][0]["queue"][cores]["mib_s"])
    return found


def _speeds(
    figure: Figure, measured: Measurements, threads: Point, predicted: float | None
) -> list[str]:
    found = [measured.value(v.name, threads, THROUGHPUT) for v in figure.workload.variants]
    model = "-" if predicted is None else f"{predicted:.2f}"
    return [
        str(threads),
        model,
        *(f"{mib_s:.2f}" for mib_s in found),
        f"{found[-1] / found[0]:.3f}",
    ]


def _latencies(figure: Figure, measured: Measurements, threads: Point) -> list[str]:
    rows = [measured.row(v.name, threads, "rt") for v in figure.workload.variants]
    cells = [
        " / ".join(format_number(row.value(Metric("rt", name))) for name in STATISTICS)
        for row in rows
    ]
    counts = dict.fromkeys(str(row.count) for row in rows)
    return [str(threads), *cells, ", ".join(counts)]
