#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# DESCRIPTION: a Python program declares a task, sees its state and counts, and the reason why another is rejected
# DEVICE: test-plain
. "$STEADY_TESTS/lib.sh"
. "$STEADY_TESTS/lib_declared.sh"
set -e

use_declared mmcblk0
# Without the package's compiled half.
python3 - "$STEADY_TESTS/../../device/python/steadyio" <<'END' || fail "python: status $?"
import os, select, sys, types

package = types.ModuleType("steadyio")
package.__path__ = [sys.argv[1]]
sys.modules["steadyio"] = package
from steadyio.declared import Task
from steadyio.errors import InvalidError

with Task("/dev/mmcblk0", level=2, period_us=10_000, block_us=440) as task:
    state = task.state()
    assert (state["level"], state["state"], state["jobs"]) == ("2", "armed", "0"), state
    poll = select.poll()
    poll.register(task, select.POLLPRI)
    assert poll.poll(0) == []
    os.system("ionice -c 1 -n 2 dd if=/dev/mmcblk0 of=/dev/null bs=4k count=1 iflag=direct status=none")
    assert task.fileno() == poll.poll(0)[0][0]
    assert task.state()["foreign"] == "1"
    assert poll.poll(0) == []
try:
    Task("/dev/mmcblk0", level=2, period_us=10_000, block_us=1)
except InvalidError as error:
    assert "block_us: 1 is less than" in str(error), error
else:
    raise SystemExit("no error")
END
no_tasks mmcblk0
knob mmcblk0 scheduler none
