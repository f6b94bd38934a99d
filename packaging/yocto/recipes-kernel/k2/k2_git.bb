# SPDX-License-Identifier: MIT OR Apache-2.0
SUMMARY = "I/O scheduler k2 with bounded real-time latency"
DESCRIPTION = "Serves the real-time I/O class first, bounds what is in flight and splits large \
background requests, so that a real-time process waits a bounded time for eMMC, SD and NVMe."

require recipes-kernel/steadyio-module.inc

RPROVIDES:${PN} += "kernel-module-k2"
