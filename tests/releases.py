# SPDX-License-Identifier: MIT OR Apache-2.0
"""The releases that tests run on: those that STEADY_RELEASES names, or the ones of `make test`.

`make test` runs kernel tests on 6.12 with its debug checks, and on 6.1 those that can tell there
what they cannot on 6.12 (`kernel_scripts.cases()`). Tests with programs in guests run on 6.1, where
the demo's kernel is there already. `make test-all` names all releases.
"""

import os

from steady_lab.targets.uml import Uml, uml

_NAMED = tuple(os.environ.get("STEADY_RELEASES", "").split())
KERNEL_TEST_RELEASES = _NAMED or ("6.1", "6.12")
# Every kernel test runs on these.
WHOLE_RELEASES = _NAMED or ("6.12",)
# On 7.3 only the kernel tests run.
_OTHERS = tuple(release for release in _NAMED if release != "7.3")
# For tests with programs in guests.
RELEASES = _OTHERS or ("6.1",)
# For tests of modules that are not among the kernel tests.
MODULE_RELEASES = _OTHERS or ("6.12",)
# For tests without a release, such as figures: the lab's default.
LAB_RELEASE = _NAMED[0] if _NAMED else "6.1"


def guest_kernel(release: str) -> Uml:
    """Return the kernel for a test with programs that `make test` runs on this release.

    On 6.12 that is the one of the kernel tests: to build another takes some minutes.
    """
    return uml(release, "debug" if not _NAMED and release in WHOLE_RELEASES else "base")
