# SPDX-License-Identifier: MIT OR Apache-2.0
"""A folder made like sysfs, with one disk under k2 that a test sets the counters of."""

from pathlib import Path

CLASSES = (*(f"rt{level}" for level in range(8)), "metadata", "best_effort", "idle")
FAULTS = ("early", "late", "foreign", "interrupted", "over_k2")
EVENTS = ("inserted", "merged", "dispatched", "split", "retried", "deferred", "completed")


class Disk:
    """An eMMC, `mmcblk0`; `root` is the folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._disk = root / "block" / "mmcblk0"
        (self._disk / "queue" / "iosched").mkdir(parents=True)
        (self._disk / "device").mkdir()
        self.set("stat", " ".join(["0"] * 17))
        self.set("queue/scheduler", "none [k2]")
        self.set("device/life_time", "0x02 0x01")
        self.set("device/pre_eol_info", "0x01")
        self.set("queue/iosched/rt_block_us", "440")
        self.set("queue/iosched/rt_deadline_us", "0 0 0 0 5000 0 0 0")
        counts = " ".join(f"{fault}=0" for fault in FAULTS)
        task = f"level=0 block_us=440 pid=7 state=armed jobs=1 waited_ns_max=0 {counts}"
        self.set("queue/iosched/rt_declared", task)
        waits = "count 0 over 0 max_ns 0 unguarded 0 max_ns 0 sum_ns 0"
        self.set("queue/iosched/rt_blocked", waits)
        counts = " ".join(f"{event} 0" for event in EVENTS)
        self.set("queue/iosched/counts", f"rt {counts}\nbackground {counts}")
        for name in CLASSES:
            self.latency(name, "count 0 sum_ns 0 max_ns 0 late 0", "")

    def set(self, file: str, text: str) -> None:
        """Replace a file in one step: the watch may be reading it."""
        path = self._disk / file
        unfinished = path.with_name(f"{path.name}.new")
        unfinished.write_text(f"{text}\n", encoding="utf-8")
        unfinished.replace(path)

    def latency(self, name: str, head: str, buckets: str) -> None:
        self.set(f"queue/iosched/latency_{name}", f"{head}\n{buckets}")
