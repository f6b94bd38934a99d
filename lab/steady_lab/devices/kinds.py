# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of all kinds of emulated hardware."""

from steady_lab.devices.emmc import EMMC
from steady_lab.devices.nvme import NVME
from steady_lab.devices.scsi import SCSI
from steady_lab.kernels.modules import K2

KINDS = {kind.name: kind for kind in (EMMC, NVME, SCSI)}
DEFAULT = EMMC.name
# All that is built against a kernel.
MODULES = (K2, *(kind.module for kind in KINDS.values()))
