# SPDX-License-Identifier: MIT OR Apache-2.0
"""The releases that tests run on: those that STEADY_RELEASES names, or the ones of `make test`.

`make test` runs each test on one release, most on 6.12. Kernel tests also run on 6.1 where that can
tell what 6.12 cannot (`kernel_scripts.cases()`). `make test-all` names all releases.
"""

import os

_NAMED = tuple(os.environ.get("STEADY_RELEASES", "").split())
KERNEL_TEST_RELEASES = _NAMED or ("6.1", "6.12")
# Every kernel test runs on these.
WHOLE_RELEASES = _NAMED or ("6.12",)
# Tests with programs in guests run on these; on 7.3 only the kernel tests run.
RELEASES = tuple(release for release in _NAMED if release != "7.3") or ("6.12",)
# For tests without a release, such as figures: the lab's default.
LAB_RELEASE = _NAMED[0] if _NAMED else "6.1"
