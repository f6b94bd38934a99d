# SPDX-License-Identifier: MIT OR Apache-2.0
"""What becomes of 100,000 mixed I/Os in `steady trace`, and how far blktrace agrees, here and now.

fio reads and writes a raw loop device, then ext4 on one. `steady trace` and blktrace's half in the
kernel (tests/trace/blk_tracer.py) trace it at once. Fails if at least 0.1 % of the requests are
neither followed nor explained, or if spans do not add up. The difference between the two times is
only printed, because the machine causes the delay between two probes.

Called by scripts/bench.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from steady_lab.paths import BUILD, PROJECT

sys.path.insert(0, str(PROJECT / "tests" / "trace"))
sys.path.insert(0, str(PROJECT / "tests"))

from blk_tracer import why_not
from both import trace_with_both
from kept import Kept

IOS = 100_000
IOS_SMALL = 400
UNEXPLAINED_MAX = 0.001


def failures(kept: Kept) -> list[str]:
    """Return the failures, as sentences."""
    account, found = kept.account, []
    requests = account["matched"] + account["unmatched"]
    if account["unmatched"] >= UNEXPLAINED_MAX * requests:
        found.append(f"{account['unmatched']} of {requests} requests are not matched: {account}")
    for io in kept.ios:
        if sum(io["spans_ns"]) != io["exited_ns"] - io["entered_ns"]:
            found.append(f"spans do not add up: {io}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    small = parser.parse_args().small
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        return 0
    wrong = []
    for name, ext4 in (("raw", False), ("ext4", True)):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            kept, agreement = trace_with_both(ext4, IOS_SMALL if small else IOS, Path(folder))
        account = {key: kept.account[key] for key in ("events", "events_lost", "matched")}
        account |= {key: kept.account[key] for key in ("at_the_edges", "hit_by_loss", "unmatched")}
        print(f"{name}: {len(kept.ios)} I/Os, {account}\n{agreement}")
        wrong += failures(kept)
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
